/* SPDX-License-Identifier: MIT */
/* policy_cgroup: control groups and units that a rule names; and which rule counts for a client in a group. */
#include "ublkd/policy/policy_cgroup.h"

#include "tests/unit/ublkd/policy/policy_world.h"

#include <errno.h>

static void test_paths(void)
{
        CHECK(policy_cgroup_is_below("/a.slice", "/a.slice"));
        CHECK(policy_cgroup_is_below("/a.slice/b.service/c", "/a.slice"));
        CHECK(policy_cgroup_is_below("/a.slice/b.service", "/a.slice/b.service"));
        CHECK(!policy_cgroup_is_below("/a.slices", "/a.slice"));
        CHECK(!policy_cgroup_is_below("/a.slice-evil/b", "/a.slice"));
        CHECK(!policy_cgroup_is_below("/x/a.slice", "/a.slice"));
        CHECK(!policy_cgroup_is_below("/a", "/a/b"));
        CHECK(!policy_cgroup_is_below("/", "/a"));
        CHECK(policy_cgroup_is_below("/", "/"));
        CHECK(!policy_cgroup_is_below("/a.slice", "/")); /* a rule for "/" is not one for all processes */
}

static void test_units(void)
{
        static const char backup[] = "/system.slice/system-backup.slice/backup@1.service";

        CHECK(policy_cgroup_is_in_unit(backup, "backup@1.service"));
        CHECK(policy_cgroup_is_in_unit(backup, "system.slice"));
        CHECK(policy_cgroup_is_in_unit(backup, "system-backup.slice"));
        CHECK(!policy_cgroup_is_in_unit(backup, "backup@.service"));
        CHECK(!policy_cgroup_is_in_unit(backup, "backup@1"));
        CHECK(!policy_cgroup_is_in_unit(backup, "1.service"));
        CHECK(policy_cgroup_is_in_unit("/init.scope", "init.scope"));
        CHECK(policy_cgroup_is_in_unit("/system.slice/backup.service/worker", "backup.service"));
        CHECK(policy_cgroup_is_in_unit("/system.slice/_cpu.service", "cpu.service"));
        CHECK(!policy_cgroup_is_in_unit("/", "backup.service"));
        CHECK(!policy_cgroup_is_in_unit("/system.slice", "backup.service"));
}

/* A user makes groups of any name below what systemd has given it. */
static void test_a_user_cannot_take_the_name_of_a_unit(void)
{
        static const char own[] = "/user.slice/user-1000.slice/user@1000.service/backup.service";

        CHECK(!policy_cgroup_is_in_unit(own, "backup.service"));
        CHECK(policy_cgroup_is_in_unit(own, "user@1000.service"));
        CHECK(policy_cgroup_is_in_unit(own, "user-1000.slice"));
        CHECK(!policy_cgroup_is_in_unit(
                "/system.slice/evil.service/system.slice/backup.service", "backup.service"));
        CHECK(!policy_cgroup_is_in_unit("/system.slice/evil.service/x.slice", "x.slice"));
}

static const char *rule_in(const struct world *world, uid_t uid, const char *cgroup, enum policy_home home)
{
        struct policy_client client = client_of(uid, uid);
        const struct policy_rule *rule;

        client.home = home;
        client.cgroup = cgroup;
        rule = policy_rule_for(world->policy, &client);
        return rule ? rule->options.name : NULL;
}

static void test_which_rule(struct world *world)
{
        world_use(world,
                "{\"rules\": ["
                "{\"name\": \"refused\", \"who\": {\"cgroups\": [\"/system.slice/evil.service\"]}},"
                "{\"name\": \"backup\", \"who\": {\"units\": [\"backup.service\", \"batch.slice\"]}},"
                "{\"name\": \"alice\", \"who\": {\"users\": [1000]}}]}",
                0);
        CHECK(policy_asks_cgroups(world->policy));
        CHECK_STR(rule_in(world, 1000, "/system.slice/evil.service/x", POLICY_HOME_HOST), "refused");
        CHECK_STR(rule_in(world, 1000, "/system.slice/evil.services", POLICY_HOME_HOST), "alice");
        CHECK_STR(rule_in(world, 33, "/system.slice/backup.service", POLICY_HOME_HOST), "backup");
        CHECK_STR(rule_in(world, 33, "/batch.slice/run-1.scope", POLICY_HOME_HOST), "backup");
        CHECK_STR(rule_in(world, 33, "/system.slice/backup.service", POLICY_HOME_UNTRUSTED), NULL);
        CHECK_STR(rule_in(world, 0, "/system.slice/backup.service", POLICY_HOME_HOST), NULL);
        CHECK_STR(rule_in(world, 33, "/system.slice", POLICY_HOME_HOST), NULL);
}

/* One process of a user namespace has all of its uids, and each would have what the rule gives to a user. */
static void test_not_in_a_user_namespace(struct world *world)
{
        static const char scope[] = "/batch.slice/run-1.scope", evil[] = "/system.slice/evil.service";

        CHECK_STR(rule_in(world, 100000, scope, POLICY_HOME_CONTAINER), NULL);
        CHECK_STR(rule_in(world, 33, scope, POLICY_HOME_CONTAINER), NULL);
        CHECK_STR(rule_in(world, 1000, "/user.slice", POLICY_HOME_CONTAINER), "alice");
        /* no user gets around a rule that refuses by entering one */
        CHECK_STR(rule_in(world, 1000, evil, POLICY_HOME_CONTAINER), NULL);
}

/* systemd gives such a uid to one service after the other. */
static void test_not_for_dynamic_users(struct world *world)
{
        static const char backup[] = "/system.slice/backup.service";
        _cleanup_problems_ struct problem_list problems = {};
        struct policy_client client = client_of(61184, 61184);

        CHECK_STR(rule_in(world, 61183, backup, POLICY_HOME_HOST), "backup");
        CHECK_STR(rule_in(world, 61184, backup, POLICY_HOME_HOST), NULL);
        CHECK_STR(rule_in(world, 65519, backup, POLICY_HOME_HOST), NULL);
        CHECK_STR(rule_in(world, 65520, backup, POLICY_HOME_HOST), "backup");
        client.cgroup = backup;
        CHECK_INT(policy_add_no_rule(world->policy, &client, &problems), 0);
        CHECK_STR(problems.items[0].reason, "DynamicUser");
        client.cgroup = "/system.slice/other.service";
        CHECK_INT(policy_add_no_rule(world->policy, &client, &problems), 0);
        CHECK_STR(problems.items[1].reason, "NoPolicyRule");
}

/* One user has processes as each uid of its range, in its own units. */
static void test_not_for_subordinate_uids(struct world *world)
{
        static const char scope[] = "/batch.slice/run-1.scope", evil[] = "/system.slice/evil.service";
        _cleanup_problems_ struct problem_list problems = {};
        struct policy_client client = client_of(100005, 100005);

        CHECK_STR(rule_in(world, 99999, scope, POLICY_HOME_HOST), "backup");
        CHECK_STR(rule_in(world, 100005, scope, POLICY_HOME_HOST), NULL);
        CHECK_STR(rule_in(world, 265535, evil, POLICY_HOME_HOST), NULL);
        client.cgroup = scope;
        CHECK_INT(policy_add_no_rule(world->policy, &client, &problems), 0);
        check_one_problem(&problems, "SubordinateUser", "");
}

/* The group is not known: a rule that refuses by it must not give way to one that allows. */
static void test_a_group_that_is_not_known(struct world *world)
{
        CHECK_STR(rule_in(world, 1000, NULL, POLICY_HOME_HOST), NULL);
        world_use(world,
                "{\"rules\": [{\"name\": \"alice\", \"who\": {\"users\": [1000]}},"
                "{\"name\": \"backup\", \"who\": {\"units\": [\"backup.service\"]}}]}",
                0);
        CHECK_STR(rule_in(world, 1000, NULL, POLICY_HOME_HOST), "alice");
        CHECK_STR(rule_in(world, 1001, NULL, POLICY_HOME_HOST), NULL);
        world_use(world, "{\"rules\": [{\"name\": \"alice\", \"who\": {\"users\": [1000]}}]}", 0);
        CHECK(!policy_asks_cgroups(world->policy));
        CHECK(!policy_asks_cgroups(NULL));
}

/* Such a rule is for many users, also with one user beside. */
static void test_names_stay_apart(struct world *world)
{
        world_use(world,
                "{\"rules\": [{\"name\": \"r\", \"who\": {\"units\": [\"a.service\"]}, \"namePrefix\": "
                "\"backup-\"}]}",
                -EINVAL);
        world_use(world,
                "{\"rules\": [{\"name\": \"r\", \"who\": {\"users\": [1000], \"cgroups\": [\"/a\"]}, "
                "\"namePrefix\": \"backup-\"}]}",
                -EINVAL);
        world_use(world,
                "{\"rules\": [{\"name\": \"r\", \"who\": {\"units\": [\"a.service\"]}, \"namePrefix\": "
                "\"b{uid}-\"}]}",
                0);
}

static void test_faults(struct world *world)
{
        static const struct {
                const char *who, *pointer;
        } faults[] = {
                {"{\"cgroups\": [\"a.slice\"]}",              "/rules/0/who/cgroups/0"},
                {"{\"cgroups\": [\"/\"]}",                    "/rules/0/who/cgroups/0"},
                {"{\"cgroups\": [\"/a\", \"/a/\"]}",          "/rules/0/who/cgroups/1"},
                {"{\"cgroups\": [\"/a/../b\"]}",              "/rules/0/who/cgroups/0"},
                {"{\"cgroups\": [\"/a//b\"]}",                "/rules/0/who/cgroups/0"},
                {"{\"units\": [\"backup\"]}",                 "/rules/0/who/units/0"  },
                {"{\"units\": [\"a.slice/b.service\"]}",      "/rules/0/who/units/0"  },
                {"{\"units\": [\"a.service\", \"b.mount\"]}", "/rules/0/who/units/1"  },
                {"{\"units\": [\"a b.service\"]}",            "/rules/0/who/units/0"  },
                {"{\"units\": [\"-.slice\"]}",                "/rules/0/who/units/0"  },
                {"{\"units\": [\"a@.service\"]}",             "/rules/0/who/units/0"  },
                {"{\"units\": [], \"cgroups\": []}",          "/rules/0/who"          },
        };

        for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
                char text[256];

                snprintf(text, sizeof(text), "{\"rules\": [{\"name\": \"r\", \"who\": %s}]}", faults[i].who);
                world_use(world, text, -EINVAL);
                world_check_fault(world, 0, faults[i].pointer, "50.json", 1);
        }
}

int main(void)
{
        struct world world;

        world_open(&world);
        test_paths();
        test_units();
        test_a_user_cannot_take_the_name_of_a_unit();
        test_which_rule(&world);
        test_not_in_a_user_namespace(&world);
        test_not_for_dynamic_users(&world);
        test_not_for_subordinate_uids(&world);
        test_a_group_that_is_not_known(&world);
        test_names_stay_apart(&world);
        test_faults(&world);
        world_close(&world);
        return check_report();
}
