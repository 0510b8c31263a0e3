/* SPDX-License-Identifier: MIT */
/* What the rules and pools of all files together must keep to. */
#include "ublkd/policy/policy_pairs.h"

#include "ublkd/policy/policy.h"
#include "ublkd/policy/policy_prefix.h"

#include <errno.h>
#include <string.h>

/* Return whether the rule is for one user that exists. Of such a rule the prefix is known. */
static bool is_for_known_user(const struct policy_rule *rule)
{
        return rule->is_for_one && rule->uid_count == 1;
}

static void print_prefix(const struct policy_rule *rule, char ret[static PREFIX_SIZE])
{
        if (is_for_known_user(rule))
                policy_prefix_print(rule->options.name_prefix, rule->uids[0].first, ret);
        else
                strcpy(ret, rule->options.name_prefix); /* at most PREFIX_TEMPLATE_MAX bytes, by the schema */
}

static bool prefixes_may_collide(const struct policy_rule *one, const struct policy_rule *other)
{
        char mine[PREFIX_SIZE], theirs[PREFIX_SIZE];

        if (policy_prefix_is_apart(one->options.name_prefix)
                && strcmp(one->options.name_prefix, other->options.name_prefix) == 0)
                return false;
        if (is_for_known_user(one) && is_for_known_user(other) && one->uids[0].first == other->uids[0].first)
                return false;
        print_prefix(one, mine);
        print_prefix(other, theirs);
        return policy_prefixes_overlap(mine, theirs);
}

static int check_two(const struct policy_rule *one, const struct policy_rule *other,
        struct problem_list *problems, bool *ret_faulty)
{
        int r = 0;

        if (strcmp(one->options.name, other->options.name) == 0) {
                *ret_faulty = true;
                r = problem_add(problems, EINVAL, "", "PolicyInvalid",
                        "%s: the rule at %s has the name %s, too; give one of them another name",
                        other->place, one->place, other->options.name);
        }
        if (r >= 0 && prefixes_may_collide(one, other)) {
                *ret_faulty = true;
                r = problem_add(problems, EINVAL, "", "PolicyInvalid",
                        "%s: a namePrefix of the rule %s, \"%s\", could begin with one of the rule %s, "
                        "\"%s\", or the other way round, so that two users could try the same names; use the "
                        "same namePrefix in both, or let them begin with different words",
                        other->place, other->options.name, other->options.name_prefix, one->options.name,
                        one->options.name_prefix);
        }
        return r;
}

static int check_pools(const struct policy *policy, const struct policy_rule *rule,
        struct problem_list *problems, bool *ret_faulty)
{
        const cJSON *item;
        int r = 0;

        cJSON_ArrayForEach (item, rule->options.pools) {
                if (r < 0 || policy_pool(policy, item->valuestring))
                        continue;
                *ret_faulty = true;
                r = problem_add(problems, EINVAL, "", "PolicyInvalid",
                        "%s: the rule %s names the pool %s, which no file has; add it to \"pools\"",
                        rule->place, rule->options.name, item->valuestring);
        }
        return r;
}

static int check_template(const struct policy_rule *rule, struct problem_list *problems, bool *ret_faulty)
{
        if (rule->is_for_one || policy_prefix_is_apart(rule->options.name_prefix))
                return 0;
        *ret_faulty = true;
        return problem_add(problems, EINVAL, "", "PolicyInvalid",
                "%s: the namePrefix of the rule %s, \"%s\", does not keep its users apart; it needs {uid} "
                "and "
                "then a character that is not a digit, like \"u{uid}-\"",
                rule->place, rule->options.name, rule->options.name_prefix);
}

int policy_pairs_check(const struct policy *policy, struct problem_list *problems, bool *ret_faulty)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < policy->rule_count; i++) {
                const struct policy_rule *rule = &policy->rules[i];

                r = check_pools(policy, rule, problems, ret_faulty);
                if (r >= 0)
                        r = check_template(rule, problems, ret_faulty);
                for (size_t j = 0; r >= 0 && j < i; j++)
                        r = check_two(&policy->rules[j], rule, problems, ret_faulty);
        }
        return r;
}
