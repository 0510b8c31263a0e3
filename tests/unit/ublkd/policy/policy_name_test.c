/* SPDX-License-Identifier: MIT */
/* policy_name: which names are those of tenants. */
#include "ublkd/policy/policy_name.h"

#include "tests/unit/ublkd/policy/policy_world.h"

#define ALICE "\"who\":{\"users\":[\"alice\"]}"
#define CAROL "\"who\":{\"users\":[\"carol\"]}" /* does not exist */
#define BOTH "\"who\":{\"users\":[1000],\"subuidsOf\":[\"alice\"]}"
#define GROUP "\"who\":{\"groups\":[50]}"
#define NO_GROUP "\"who\":{\"groups\":[\"none\"]}" /* does not exist */
#define UNIT "\"who\":{\"units\":[\"a.service\"]}"
#define CGROUP "\"who\":{\"cgroups\":[\"/a\"]}"
#define DEVICES ",\"devices\":1"
#define PREFIX(text) DEVICES ",\"namePrefix\":\"" text "\""

static const struct {
        const char *rule, *name;
        bool given;
} cases[] = {
        {GROUP DEVICES,           "u7-data",                true },
        {UNIT DEVICES,            "u7-data",                true },
        {CGROUP DEVICES,          "u7-",                    true },
        {NO_GROUP DEVICES,        "u7-data",                false},
        {GROUP,                   "u7-data",                false}, /* it refuses */
        {GROUP DEVICES,           "data",                   false},
        {GROUP DEVICES,           "u-data",                 false},
        {GROUP DEVICES,           "u7",                     false},
        {GROUP DEVICES,           "u7x-data",               false},
        {GROUP DEVICES,           "u0-data",                false}, /* root is never one */
        {GROUP DEVICES,           "u07-data",               false}, /* not as a uid is printed */
        {GROUP DEVICES,           "u4294967294-x",          true },
        {GROUP DEVICES,           "u4294967295-x",          false},
        {GROUP DEVICES,           "u99999999999999999999-", false},
        {GROUP PREFIX("{uid}.x"), "7.xy",                   true },
        {GROUP PREFIX("{uid}.x"), "7.y",                    false},
        {ALICE DEVICES,           "u1000-data",             true },
        {ALICE DEVICES,           "u1001-data",             false},
        {BOTH DEVICES,            "u100001-data",           true },
        {BOTH DEVICES,            "u99999-data",            false},
        {ALICE PREFIX("alice-"),  "alice-data",             true },
        {ALICE PREFIX("alice-"),  "alice",                  false},
        {ALICE PREFIX("a{uid}"),  "a10000",                 true }, /* she is the only one: any name that begins so */
        {ALICE PREFIX("a{uid}"),  "a2000",                  false},
        {CAROL PREFIX("carol-"),  "carol-data",             false},
        {CAROL DEVICES,           "u1000-data",             false},
};

/* Two rules: the first one gives nothing, the second one is for a group. */
static const struct {
        const char *first, *second, *name;
        bool given;
} pairs[] = {
        {ALICE,  GROUP DEVICES,          "u1000-data",   false}, /* the first one counts for each process of alice */
        {ALICE,  GROUP DEVICES,          "u1001-data",   true },
        {ALICE,  ALICE PREFIX("alice-"), "alice-data",   false},
        {BOTH,   UNIT DEVICES,           "u100001-data", false},
        {BOTH,   UNIT DEVICES,           "u99999-data",  true },
        {GROUP,  ALICE DEVICES,          "u1000-data",   true }, /* alice may be in no group */
        {UNIT,   ALICE DEVICES,          "u1000-data",   true },
        {CGROUP, GROUP DEVICES,          "u1000-data",   true },
        {CAROL,  GROUP DEVICES,          "u1000-data",   true },
};

static void test_names(struct world *world)
{
        char text[512];

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                const struct policy_rule *rule;

                snprintf(text, sizeof(text),
                        "{\"rules\":[{\"name\":\"other\"," NO_GROUP "},{\"name\":\"r\",%s}]}", cases[i].rule);
                world_use(world, text, 0);
                rule = policy_name_rule(world->policy, cases[i].name);
                if (!CHECK_STR(rule ? rule->options.name : NULL, cases[i].given ? "r" : NULL))
                        fprintf(stderr, "    %s: %s\n", cases[i].rule, cases[i].name);
        }
}

static void test_pairs(struct world *world)
{
        char text[512];

        for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
                const struct policy_rule *rule;

                snprintf(text, sizeof(text), "{\"rules\":[{\"name\":\"first\",%s},{\"name\":\"r\",%s}]}",
                        pairs[i].first, pairs[i].second);
                world_use(world, text, 0);
                rule = policy_name_rule(world->policy, pairs[i].name);
                if (!CHECK_STR(rule ? rule->options.name : NULL, pairs[i].given ? "r" : NULL))
                        fprintf(stderr, "    %s, then %s: %s\n", pairs[i].first, pairs[i].second,
                                pairs[i].name);
        }
}

int main(void)
{
        struct world world;

        world_open(&world);
        test_names(&world);
        test_pairs(&world);
        CHECK(!policy_name_rule(NULL, "u7-data"));
        world_close(&world);
        return check_report();
}
