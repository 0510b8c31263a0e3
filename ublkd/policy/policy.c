/* SPDX-License-Identifier: MIT */
/* A policy, and which of its rules matches a client. */
#include "ublkd/policy/policy.h"

#include "ublkd/policy/policy_cgroup.h"

#include <errno.h>
#include <string.h>

enum { DYNAMIC_UID_FIRST = 61184, DYNAMIC_UID_LAST = 65519 }; /* systemd.io/UIDS-GIDS */

int policy_new(const char *directory, struct policy **ret)
{
        _cleanup_policy_ struct policy *policy = calloc(1, sizeof(*policy));

        if (!policy)
                return -ENOMEM;
        policy->directory = strdup(directory);
        if (!policy->directory)
                return -ENOMEM;
        *ret = TAKE_PTR(policy);
        return 0;
}

struct policy *policy_free(struct policy *policy)
{
        if (!policy)
                return NULL;
        for (size_t i = 0; i < policy->pool_count; i++) {
                free(policy->pools[i].name);
                free(policy->pools[i].directory);
        }
        for (size_t i = 0; i < policy->rule_count; i++) {
                struct policy_rule *rule = &policy->rules[i];

                free(rule->place);
                free(rule->uids);
                free(rule->gids);
                dispatch_release(&rule->options, &policy_rule_options_table);
        }
        free(policy->pools);
        free(policy->rules);
        free(policy->subuids);
        free(policy->directory);
        problem_list_clear(&policy->notes);
        free(policy);
        return NULL;
}

void policy_set_subuids(struct policy *policy, struct uid_range *ranges, size_t count)
{
        free(policy->subuids);
        policy->subuids = ranges;
        policy->subuid_count = count;
}

const struct policy_pool *policy_pool(const struct policy *policy, const char *name)
{
        for (size_t i = 0; policy && i < policy->pool_count; i++)
                if (strcmp(policy->pools[i].name, name) == 0)
                        return &policy->pools[i];
        return NULL;
}

struct uid_range policy_account(const struct policy_rule *rule, uid_t uid)
{
        for (size_t i = 0; i < rule->uid_count; i++)
                if (uid >= rule->uids[i].first && uid <= rule->uids[i].last)
                        return rule->uids[i];
        return (struct uid_range){.first = uid, .last = uid};
}

uint32_t policy_account_of(const struct policy *policy, uid_t uid)
{
        for (size_t i = 0; policy && i < policy->rule_count; i++)
                for (size_t j = 0; j < policy->rules[i].uid_count; j++)
                        if (uid >= policy->rules[i].uids[j].first && uid <= policy->rules[i].uids[j].last)
                                return policy->rules[i].uids[j].first;
        return uid;
}

static bool has_gid(const struct policy_rule *rule, gid_t gid)
{
        for (size_t i = 0; i < rule->gid_count; i++)
                if (rule->gids[i] == gid)
                        return true;
        return false;
}

static bool has_uid(const struct uid_range *ranges, size_t count, uid_t uid)
{
        for (size_t i = 0; i < count; i++)
                if (uid >= ranges[i].first && uid <= ranges[i].last)
                        return true;
        return false;
}

static bool names_group(const struct policy_rule *rule, const struct policy_client *client)
{
        if (client->home != POLICY_HOME_HOST)
                return false;
        for (size_t i = 0; i < client->group_count; i++)
                if (has_gid(rule, client->groups[i]))
                        return true;
        return has_gid(rule, client->gid);
}

static bool asks_cgroup(const struct policy_rule *rule)
{
        return cJSON_GetArraySize(rule->options.who.cgroups) > 0
               || cJSON_GetArraySize(rule->options.who.units) > 0;
}

static bool has_cgroup(const struct policy_rule *rule, const char *cgroup)
{
        const cJSON *item;

        cJSON_ArrayForEach (item, rule->options.who.cgroups)
                if (policy_cgroup_is_below(cgroup, item->valuestring))
                        return true;
        cJSON_ArrayForEach (item, rule->options.who.units)
                if (policy_cgroup_is_in_unit(cgroup, item->valuestring))
                        return true;
        return false;
}

bool policy_asks_groups(const struct policy *policy)
{
        for (size_t i = 0; policy && i < policy->rule_count; i++)
                if (policy->rules[i].gid_count > 0 || asks_cgroup(&policy->rules[i]))
                        return true;
        return false;
}

bool policy_asks_cgroups(const struct policy *policy)
{
        for (size_t i = 0; policy && i < policy->rule_count; i++)
                if (asks_cgroup(&policy->rules[i]))
                        return true;
        return false;
}

static bool may_match(const struct policy_client *client)
{
        return client->uid != 0 && client->uid != (uid_t)-1
               && (client->home == POLICY_HOME_HOST || client->home == POLICY_HOME_CONTAINER);
}

/* Of DynamicUser=: systemd gives the uid to another service when this one has stopped, and its disks would be those of that
 * service. */
static bool is_dynamic(const struct policy_client *client)
{
        return client->uid >= DYNAMIC_UID_FIRST && client->uid <= DYNAMIC_UID_LAST;
}

static bool is_subordinate(const struct policy *policy, const struct policy_client *client)
{
        return has_uid(policy->subuids, policy->subuid_count, client->uid);
}

/* A user namespace may have thousands of uids, and one process in it can be all of these users: each would have what the
 * rule gives. The same user can be each of them on the host. */
static bool may_match_by_group(const struct policy *policy, const struct policy_client *client)
{
        return client->home == POLICY_HOME_HOST && !is_dynamic(client) && !is_subordinate(policy, client);
}

/* Return whether a rule refuses groups, in a user namespace: its user may be in one of them. Each user can make itself such a
 * namespace, and leave its groups in one to which newgidmap(1) has given its range. */
static bool may_refuse_groups(const struct policy_rule *rule, const struct policy_client *client)
{
        const struct policy_rule_options *options = &rule->options;

        return client->home == POLICY_HOME_CONTAINER && rule->gid_count > 0
               && (options->devices == 0 || options->size == 0 || cJSON_GetArraySize(options->targets) == 0);
}

const struct policy_rule *policy_rule_for(const struct policy *policy, const struct policy_client *client)
{
        if (!policy || !may_match(client))
                return NULL;
        for (size_t i = 0; i < policy->rule_count; i++) {
                const struct policy_rule *rule = &policy->rules[i];

                if (has_uid(rule->uids, rule->uid_count, client->uid))
                        return rule;
                if (names_group(rule, client))
                        return may_match_by_group(policy, client) ? rule : NULL;
                if (may_refuse_groups(rule, client))
                        return NULL;
                if (!asks_cgroup(rule))
                        continue;
                if (!client->cgroup) /* it may be the one that refuses */
                        return NULL;
                if (has_cgroup(rule, client->cgroup))
                        return may_match_by_group(policy, client) ? rule : NULL;
        }
        return NULL;
}

static bool is_after_refused_groups(const struct policy *policy, const struct policy_client *client)
{
        for (size_t i = 0; i < policy->rule_count; i++)
                if (may_refuse_groups(&policy->rules[i], client))
                        return true;
        return false;
}

/* Return whether a rule is for a group or the control group of the client. */
static bool is_in_a_group(const struct policy *policy, const struct policy_client *client)
{
        for (size_t i = 0; i < policy->rule_count; i++)
                if (names_group(&policy->rules[i], client)
                        || (client->cgroup && has_cgroup(&policy->rules[i], client->cgroup)))
                        return true;
        return false;
}

int policy_add_no_rule(
        const struct policy *policy, const struct policy_client *client, struct problem_list *problems)
{
        if (client->uid == 0)
                return problem_add(problems, EPERM, "", "NoPolicyRule",
                        "Uid 0 is never a tenant: no rule of a policy can name it; use another user");
        if (!may_match(client))
                return problem_add(problems, EPERM, "", "NoPolicyRule",
                        "No rule can name this process: its container has no user namespace of its own, or "
                        "one "
                        "inside another one or with root of the host, so its uid %u may be one that its "
                        "image "
                        "chose; give the container a user namespace of its own that is made on the host, as "
                        "rootless Podman does without --userns=keep-id and --userns=auto",
                        client->uid);
        if (!policy)
                return problem_add(problems, EPERM, "", "NoPolicyRule",
                        "No rule is in force: the policy was not loaded; an administrator finds the cause "
                        "with "
                        "'ublkctl host'");
        if (!client->cgroup && policy_asks_cgroups(policy))
                return problem_add(problems, EPERM, "", "NoPolicyRule",
                        "A rule is for control groups, and that of this process cannot be read, so that no "
                        "rule after it counts; let the process that connects live until the answer has come, "
                        "and mount cgroup v2");
        if (client->home == POLICY_HOME_HOST && is_dynamic(client) && is_in_a_group(policy, client))
                return problem_add(problems, EPERM, "", "DynamicUser",
                        "The rule for a group or unit of this process does not count for uid %u: it is one "
                        "that systemd gives to another service after this one, which would have its disks; "
                        "give the service a user of its own: User= without DynamicUser=",
                        client->uid);
        if (client->home == POLICY_HOME_HOST && is_subordinate(policy, client)
                && is_in_a_group(policy, client))
                return problem_add(problems, EPERM, "", "SubordinateUser",
                        "The rule for a group or unit of this process does not count for uid %u, which is in "
                        "a "
                        "range of /etc/subuid: the user who has that range has processes as each uid of it; "
                        "connect as that user, or have an administrator name the user in \"subuidsOf\"",
                        client->uid);
        if (!may_match_by_group(policy, client) && is_in_a_group(policy, client))
                return problem_add(problems, EPERM, "", "NoPolicyRule",
                        "The rule for the control group of this process does not count in a user namespace, "
                        "of which one process can have all uids, and no rule before it names uid %u; connect "
                        "from outside of the container, or have an administrator name the uid in \"users\" "
                        "or "
                        "\"subuidsOf\"",
                        client->uid);
        if (is_after_refused_groups(policy, client))
                return problem_add(problems, EPERM, "", "NoPolicyRule",
                        "A rule refuses groups, no rule before it names uid %u, and none after it counts in "
                        "a user namespace, where a process can hide the groups of its user; connect from "
                        "outside of the user namespace, or have an administrator name the uid in \"users\" "
                        "or \"subuidsOf\" of a rule before that one",
                        client->uid);
        return problem_add(problems, EPERM, "", "NoPolicyRule",
                "No rule names uid %u; an administrator can add one with \"who\": {\"users\": [%u]} to a "
                "file such as %s/50-local.json, and run 'systemctl reload ublkd'",
                client->uid, client->uid, policy->directory);
}
