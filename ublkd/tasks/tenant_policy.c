/* SPDX-License-Identifier: MIT */
/* The policy as the supervisor loads it. */
#include "ublkd/tasks/tenant_policy.h"

#include "ublkd/base/log.h"
#include "ublkd/policy/policy_load.h"
#include "ublkd/values/path_text.h"

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

static bool gives_devices(const struct policy *policy)
{
        for (size_t i = 0; i < policy->rule_count; i++)
                if (policy->rules[i].options.devices > 0)
                        return true;
        return false;
}

/* The same as in units/60-ublkd.rules. */
static bool is_read_by_udev(const char *runtime_dir)
{
        _cleanup_free_ char *plain = NULL;

        return path_make_absolute("/", runtime_dir, &plain) < 0 || strcmp(plain, "/run/ublkd") == 0
               || strcmp(plain, "/var/run/ublkd") == 0;
}

void tenant_policy_check_runtime(const struct tenant_policy *loaded, const char *runtime_dir)
{
        if (!loaded->policy || !gives_devices(loaded->policy) || is_read_by_udev(runtime_dir))
                return;
        (void)problem_add(&loaded->policy->notes, 0, "", "RuntimeDirectoryElsewhere",
                "The disks of tenants are announced in %s, but 60-ublkd.rules reads /run/ublkd, so udev "
                "makes "
                "links by what a tenant has written; leave out RuntimeDirectory=, or have a copy of that "
                "file "
                "in /etc/udev/rules.d with this directory",
                runtime_dir);
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
