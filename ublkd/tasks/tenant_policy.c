/* SPDX-License-Identifier: MIT */
/* The policy as the supervisor loads it. */
#include "ublkd/tasks/tenant_policy.h"

#include "ublkd/base/log.h"
#include "ublkd/policy/policy_load.h"

#include <string.h>

void tenant_policy_load(const char *directory, struct tenant_policy *ret)
{
        *ret = (struct tenant_policy){};
        ret->error = policy_load(directory, &(const struct policy_accounts){}, &ret->policy, &ret->problems);
}

void tenant_policy_clear(struct tenant_policy *loaded)
{
        loaded->policy = policy_free(loaded->policy);
        problem_list_clear(&loaded->problems);
}

static void log_problems(int level, const struct problem_list *problems)
{
        for (size_t i = 0; i < problems->count; i++)
                log_line(level, NULL, "%s", problems->items[i].detail);
}

/* On ENOMEM a problem is in the log only. */
static void report_faults(const struct tenant_policy *loaded, bool has_older, struct problem_list *shown)
{
        const char *what = has_older ? "the rules from before stay"
                                     : "no rule is in force, so only administrators can change devices";

        log_problems(LOG_WARNING, &loaded->problems);
        if (loaded->error == -EINVAL)
                log_error(NULL,
                        "Loading the policy failed: its files have problems (%zu); %s; correct the files, "
                        "try "
                        "'ublkd --check-config', and reload ublkd",
                        loaded->problems.count + loaded->problems.dropped, what);
        else
                log_error(NULL, "Loading the policy failed: %s; %s; reload ublkd again",
                        strerror(-loaded->error), what);
        (void)problem_add(shown, 0, "", has_older ? "PolicyNotReloaded" : "PolicyNotLoaded",
                "The policy was not loaded: %s, and disks stay in service; correct its files, try 'ublkd "
                "--check-config', and reload ublkd",
                what);
        (void)problem_list_append(shown, &loaded->problems);
}

void tenant_policy_report(const struct tenant_policy *loaded, bool has_older, struct problem_list *shown)
{
        if (!loaded->policy) {
                report_faults(loaded, has_older, shown);
                return;
        }
        log_problems(LOG_WARNING, &loaded->policy->notes);
        (void)problem_list_append(shown, &loaded->policy->notes);
        if (loaded->policy->rule_count > 0)
                log_info(NULL, "The policy was loaded: rules %zu, pools %zu (%s)", loaded->policy->rule_count,
                        loaded->policy->pool_count, loaded->policy->directory);
}
