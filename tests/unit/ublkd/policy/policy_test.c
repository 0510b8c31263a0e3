/* SPDX-License-Identifier: MIT */
/* policy: which rule counts for which client. */
#include "tests/unit/ublkd/policy/policy_world.h"

#include <errno.h>

static const char rules[] = "{\"rules\": ["
                            "{\"name\": \"deny\", \"who\": {\"users\": [1001]}},"
                            "{\"name\": \"alice\", \"who\": {\"users\": [\"alice\"]}},"
                            "{\"name\": \"containers\", \"who\": {\"subuidsOf\": [\"alice\"]}},"
                            "{\"name\": \"developers\", \"who\": {\"groups\": [\"developers\", 50]}},"
                            "{\"name\": \"late\", \"who\": {\"users\": [1000, 3000]}}]}";

static const char *name_of(const struct world *world, const struct policy_client *client)
{
        const struct policy_rule *rule = policy_rule_for(world->policy, client);

        return rule ? rule->options.name : NULL;
}

static const char *rule_of(const struct world *world, uid_t uid, gid_t gid, enum policy_home home)
{
        struct policy_client client = client_of(uid, gid);

        client.home = home;
        return name_of(world, &client);
}

static void test_users(struct world *world)
{
        CHECK_STR(rule_of(world, 1000, 1000, POLICY_HOME_HOST), "alice"); /* the first */
        CHECK_STR(rule_of(world, 1000, 2000, POLICY_HOME_HOST), "alice");
        CHECK_STR(rule_of(world, 1001, 2000, POLICY_HOME_HOST), "deny");
        CHECK_STR(rule_of(world, 3000, 3000, POLICY_HOME_HOST), "late");
        CHECK_STR(rule_of(world, 3001, 3001, POLICY_HOME_HOST), NULL);
        CHECK_STR(rule_of(world, 1000, 1000, POLICY_HOME_CONTAINER),
                "alice"); /* root of a rootless container */
}

static void test_groups(struct world *world)
{
        static const gid_t groups[] = {7, 50};
        struct policy_client client = client_of(4000, 4000);

        CHECK_STR(rule_of(world, 4000, 2000, POLICY_HOME_HOST), "developers");
        CHECK_STR(name_of(world, &client), NULL);
        client.groups = groups;
        client.group_count = 1;
        CHECK_STR(name_of(world, &client), NULL);
        client.group_count = 2;
        CHECK_STR(name_of(world, &client), "developers");
        client.home = POLICY_HOME_CONTAINER;
        CHECK_STR(name_of(world, &client), NULL);
        client.gid = 2000;
        CHECK_STR(name_of(world, &client), NULL);
}

/* systemd gives such a uid to the next service, which would own the disks; and a rule that refuses must not give way. */
static void test_a_group_is_not_for_dynamic_users(struct world *world)
{
        static const gid_t groups[] = {7, 50};
        _cleanup_problems_ struct problem_list problems = {};
        struct policy_client client = client_of(61184, 61184);

        CHECK_STR(rule_of(world, 61183, 2000, POLICY_HOME_HOST), "developers");
        CHECK_STR(rule_of(world, 61184, 2000, POLICY_HOME_HOST), NULL);
        CHECK_STR(rule_of(world, 65519, 2000, POLICY_HOME_HOST), NULL);
        CHECK_STR(rule_of(world, 65520, 2000, POLICY_HOME_HOST), "developers");
        client.groups = groups;
        client.group_count = 1;
        CHECK_INT(policy_add_no_rule(world->policy, &client, &problems), 0);
        check_one_problem(&problems, "NoPolicyRule", "");
        client.group_count = 2;
        CHECK_STR(name_of(world, &client), NULL);
        CHECK_INT(policy_add_no_rule(world->policy, &client, &problems), 0);
        check_one_problem(&problems, "DynamicUser", "");
        client.home = POLICY_HOME_CONTAINER; /* no group counts there, so that none is the cause */
        CHECK_INT(policy_add_no_rule(world->policy, &client, &problems), 0);
        check_one_problem(&problems, "NoPolicyRule", "");
}

static void test_subordinate_uids(struct world *world)
{
        CHECK_STR(rule_of(world, 99999, 1, POLICY_HOME_CONTAINER), NULL);
        CHECK_STR(rule_of(world, 100000, 1, POLICY_HOME_CONTAINER), "containers");
        CHECK_STR(rule_of(world, 165535, 1, POLICY_HOME_CONTAINER), "containers");
        CHECK_STR(rule_of(world, 165536, 1, POLICY_HOME_CONTAINER), NULL);
}

/* A set-uid file of a subordinate uid makes a process of the host with that uid, in the groups of the user who runs it. */
static void test_a_group_is_not_for_subordinate_uids(struct world *world)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct policy_client client = client_of(200005, 2000);

        CHECK_STR(rule_of(world, 199999, 2000, POLICY_HOME_HOST), "developers");
        CHECK_STR(rule_of(world, 200000, 2000, POLICY_HOME_HOST), NULL); /* of carol, whom no rule names */
        CHECK_STR(rule_of(world, 265535, 2000, POLICY_HOME_HOST), NULL);
        CHECK_STR(rule_of(world, 265536, 2000, POLICY_HOME_HOST), "developers");
        CHECK_STR(rule_of(world, 100005, 2000, POLICY_HOME_HOST), "containers");  /* a rule before */
        CHECK_STR(rule_of(world, 1000000, 2000, POLICY_HOME_HOST), "developers"); /* of root */
        CHECK_INT(policy_add_no_rule(world->policy, &client, &problems), 0);
        check_one_problem(&problems, "SubordinateUser", "");
        client.gid = 1;
        CHECK_INT(policy_add_no_rule(world->policy, &client, &problems), 0);
        check_one_problem(&problems, "NoPolicyRule", "");
        client = client_of(200005, 2000);
        client.home = POLICY_HOME_CONTAINER; /* no group counts there, so that none is the cause */
        CHECK_INT(policy_add_no_rule(world->policy, &client, &problems), 0);
        check_one_problem(&problems, "NoPolicyRule", "");
}

/* One user can have processes as each of its subordinate uids. */
static void test_accounts(struct world *world)
{
        struct policy_client client = client_of(100005, 1);
        struct uid_range account;

        client.home = POLICY_HOME_CONTAINER;
        account = policy_account(policy_rule_for(world->policy, &client), 100005);
        CHECK_INT(account.first, 100000);
        CHECK_INT(account.last, 165535);
        client = client_of(1000, 1000);
        account = policy_account(policy_rule_for(world->policy, &client), 1000);
        CHECK_INT(account.first, 1000);
        CHECK_INT(account.last, 1000);
        client = client_of(4000, 2000); /* by its group */
        account = policy_account(policy_rule_for(world->policy, &client), 4000);
        CHECK_INT(account.first, 4000);
        CHECK_INT(account.last, 4000);
        CHECK_INT(policy_account_of(world->policy, 100005), 100000);
        CHECK_INT(policy_account_of(world->policy, 1000), 1000);
        CHECK_INT(policy_account_of(world->policy, 4000), 4000);
        CHECK_INT(policy_account_of(NULL, 100005), 100005);
}

static void test_who_never_matches(struct world *world)
{
        CHECK_STR(rule_of(world, 0, 2000, POLICY_HOME_HOST), NULL);
        CHECK_STR(rule_of(world, (uid_t)-1, 2000, POLICY_HOME_HOST), NULL);
        CHECK_STR(rule_of(world, 1000, 2000, POLICY_HOME_UNTRUSTED), NULL);
        CHECK_STR(rule_of(world, 1000, 2000, _POLICY_HOME_MAX), NULL);
        CHECK(!policy_rule_for(NULL, &(struct policy_client){.uid = 1000, .home = POLICY_HOME_HOST}));
}

/* A user is in no group in a user namespace, and can make one: no rule that refuses a group must give way to a later one. */
static void test_a_user_namespace_leaves_no_rule_that_refuses_a_group(struct world *world)
{
#define GIVES "\"devices\": 2, \"size\": \"1GiB\", \"targets\": [\"null\"]}"
#define RULES(more)                                                                                          \
        "{\"rules\": [{\"name\": \"first\", \"who\": {\"users\": [1001]}, " GIVES ","                        \
        "{\"name\": \"group\", \"who\": {\"groups\": [2000]}" more "},"                                      \
        "{\"name\": \"alice\", \"who\": {\"users\": [1000], \"subuidsOf\": [\"alice\"]}, " GIVES "]}"
        static const char *const refusing[] = {
                RULES(""),
                RULES(", \"devices\": 0, \"size\": \"1GiB\", \"targets\": [\"null\"]"),
                RULES(", \"devices\": 2, \"targets\": [\"null\"]"),
                RULES(", \"devices\": 2, \"size\": \"1GiB\""),
        };
        _cleanup_problems_ struct problem_list problems = {};
        struct policy_client client = client_of(1000, 1000);

        for (size_t i = 0; i < ARRAY_SIZE(refusing); i++) {
                world_use(world, refusing[i], 0);
                CHECK_STR(rule_of(world, 1000, 2000, POLICY_HOME_HOST), "group");
                CHECK_STR(rule_of(world, 1000, 1000, POLICY_HOME_HOST), "alice");
                CHECK_STR(rule_of(world, 1000, 2000, POLICY_HOME_CONTAINER), NULL);
                CHECK_STR(rule_of(world, 1000, 65534, POLICY_HOME_CONTAINER), NULL);
                CHECK_STR(rule_of(world, 100005, 65534, POLICY_HOME_CONTAINER), NULL);
                CHECK_STR(rule_of(world, 1001, 2000, POLICY_HOME_CONTAINER), "first");
        }
        client.home = POLICY_HOME_CONTAINER;
        CHECK_INT(policy_add_no_rule(world->policy, &client, &problems), 0);
        CHECK(strstr(problems.items[0].detail, "subuidsOf"));
        check_one_problem(&problems, "NoPolicyRule", "");
        world_use(world, RULES(", \"devices\": 1, \"size\": \"1GiB\", \"targets\": [\"null\"]"),
                0); /* one that gives is not a ceiling: ublkd-policy(5) */
        CHECK_STR(rule_of(world, 1000, 2000, POLICY_HOME_HOST), "group");
        CHECK_STR(rule_of(world, 1000, 2000, POLICY_HOME_CONTAINER), "alice");
#undef RULES
#undef GIVES
}

static void test_no_rule_is_explained(struct world *world)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct policy_client client = client_of(3001, 3001);

        CHECK_INT(policy_add_no_rule(world->policy, &client, &problems), 0);
        CHECK_INT(problems.items[0].error, EPERM);
        CHECK(strstr(problems.items[0].detail, "\"who\": {\"users\": [3001]}"));
        CHECK(strstr(problems.items[0].detail, world->directory));
        check_one_problem(&problems, "NoPolicyRule", "");
        CHECK_INT(policy_add_no_rule(NULL, &client, &problems), 0);
        check_one_problem(&problems, "NoPolicyRule", "");
        client.home = POLICY_HOME_UNTRUSTED;
        CHECK_INT(policy_add_no_rule(NULL, &client, &problems), 0);
        check_one_problem(&problems, "NoPolicyRule", "");
        client.uid = 0;
        CHECK_INT(policy_add_no_rule(NULL, &client, &problems), 0);
        check_one_problem(&problems, "NoPolicyRule", "");
}

/* Without the ranges a rule for a group would be for each uid of its members. */
static void test_ranges_that_cannot_be_read(struct world *world)
{
        world->accounts.subuid = "/dev/null";
        world_use(world, "{\"rules\": [{\"name\": \"r\", \"who\": {\"groups\": [50]}}]}", -EINVAL);
        CHECK_STR(world->problems.items[0].reason, "PolicyInvalid");
        world_use(world, "{\"rules\": [{\"name\": \"r\", \"who\": {\"units\": [\"a.service\"]}}]}", -EINVAL);
        world_use(world, "{\"rules\": [{\"name\": \"r\", \"who\": {\"users\": [50]}}]}", 0);
}

int main(void)
{
        struct world world;

        world_open(&world);
        world_use(&world, rules, 0);
        if (world.policy) {
                test_users(&world);
                test_groups(&world);
                test_a_group_is_not_for_dynamic_users(&world);
                test_subordinate_uids(&world);
                test_a_group_is_not_for_subordinate_uids(&world);
                test_accounts(&world);
                test_who_never_matches(&world);
                test_no_rule_is_explained(&world);
        }
        test_a_user_namespace_leaves_no_rule_that_refuses_a_group(&world);
        test_ranges_that_cannot_be_read(&world);
        world_close(&world);
        return check_report();
}
