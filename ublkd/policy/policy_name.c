/* SPDX-License-Identifier: MIT */
/* Whose names a policy makes of those that begin with a prefix. */
#include "ublkd/policy/policy_name.h"

#include "ublkd/policy/policy_prefix.h"

#include <string.h>

static bool names_user(const struct policy_rule *rule, uid_t uid)
{
        for (size_t i = 0; i < rule->uid_count; i++)
                if (uid >= rule->uids[i].first && uid <= rule->uids[i].last)
                        return true;
        return false;
}

/* Return whether the rule may match some process of the user. */
static bool may_name(const struct policy_rule *rule, uid_t uid)
{
        const struct policy_rule_options *options = &rule->options;

        return rule->gid_count > 0 || cJSON_GetArraySize(options->who.units) > 0
               || cJSON_GetArraySize(options->who.cgroups) > 0 || names_user(rule, uid);
}

/* Return whether the name is for a user, by the prefix of the rule. *ret: the user. */
static bool gives_name(const struct policy_rule *rule, const char *name, uid_t *ret)
{
        char prefix[PREFIX_SIZE];

        if (rule->options.devices == 0)
                return false;
        if (policy_prefix_is_apart(rule->options.name_prefix))
                return policy_prefix_match(rule->options.name_prefix, name, ret) && may_name(rule, *ret);
        if (rule->uid_count == 0) /* the one user does not exist */
                return false;
        *ret = rule->uids[0].first;
        policy_prefix_print(rule->options.name_prefix, *ret, prefix);
        return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Return whether one of the first rules names the user by its uid: it matches each process of that user, and no later rule does. */
static bool is_named_before(const struct policy *policy, size_t rules, uid_t uid)
{
        for (size_t i = 0; i < rules; i++)
                if (names_user(&policy->rules[i], uid))
                        return true;
        return false;
}

const struct policy_rule *policy_name_rule(const struct policy *policy, const char *name)
{
        for (size_t i = 0; policy && i < policy->rule_count; i++) {
                uid_t uid;

                if (gives_name(&policy->rules[i], name, &uid) && !is_named_before(policy, i, uid))
                        return &policy->rules[i];
        }
        return NULL;
}
