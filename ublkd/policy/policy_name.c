/* SPDX-License-Identifier: MIT */
/* Whose names a policy makes of those that begin with a prefix. */
#include "ublkd/policy/policy_name.h"

#include "ublkd/policy/policy_prefix.h"

#include <string.h>

static bool may_name(const struct policy_rule *rule, uid_t uid)
{
        const struct policy_rule_options *options = &rule->options;

        if (rule->gid_count > 0 || cJSON_GetArraySize(options->who.units) > 0
                || cJSON_GetArraySize(options->who.cgroups) > 0)
                return true;
        for (size_t i = 0; i < rule->uid_count; i++)
                if (uid >= rule->uids[i].first && uid <= rule->uids[i].last)
                        return true;
        return false;
}

static bool gives_name(const struct policy_rule *rule, const char *name)
{
        char prefix[PREFIX_SIZE];
        uid_t uid;

        if (rule->options.devices == 0)
                return false;
        if (policy_prefix_is_apart(rule->options.name_prefix))
                return policy_prefix_match(rule->options.name_prefix, name, &uid) && may_name(rule, uid);
        if (rule->uid_count == 0) /* the one user does not exist */
                return false;
        policy_prefix_print(rule->options.name_prefix, rule->uids[0].first, prefix);
        return strncmp(name, prefix, strlen(prefix)) == 0;
}

const struct policy_rule *policy_name_rule(const struct policy *policy, const char *name)
{
        for (size_t i = 0; policy && i < policy->rule_count; i++)
                if (gives_name(&policy->rules[i], name))
                        return &policy->rules[i];
        return NULL;
}
