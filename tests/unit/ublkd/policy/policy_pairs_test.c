/* SPDX-License-Identifier: MIT */
/* policy_pairs: rules that are good one by one, and not together. */
#include "ublkd/policy/policy_pairs.h"

#include "tests/unit/ublkd/policy/policy_world.h"

#include <errno.h>

/* Two rules; their members but the name. */
static void use_two(struct world *world, const char *one, const char *other, int result)
{
        char text[1024];

        snprintf(text, sizeof(text), "{\"rules\":[{\"name\":\"a\",%s},\n{\"name\":\"b\",%s}]}", one, other);
        world_use(world, text, result);
        if (result < 0) {
                world_check_fault(world, 0, "", "50.json", 2);
                CHECK_INT(world->problems.count, 1);
        }
}

#define ALICE "\"who\":{\"users\":[\"alice\"]}"
#define BOB "\"who\":{\"users\":[1001]}"
#define CAROL "\"who\":{\"users\":[\"carol\"]}" /* does not exist */
#define MANY "\"who\":{\"groups\":[50]}"
#define PREFIX(text) ",\"namePrefix\":\"" text "\""

static const struct {
        const char *one, *other;
        bool good;
} pairs[] = {
        {MANY,                   MANY,                     true }, /* the default in both */
        {ALICE,                  MANY,                     true },
        {ALICE PREFIX("alice-"), MANY,                     true },
        {ALICE PREFIX("alice-"), BOB PREFIX("bob-"),       true },
        {ALICE PREFIX("a"),      BOB PREFIX("ab-"),        false},
        {ALICE PREFIX("a-"),     BOB PREFIX("a-"),         false},
        {ALICE PREFIX("a-"),     ALICE PREFIX("a-b-"),     true }, /* only the first counts for her */
        {ALICE PREFIX("u1001-"), MANY,                     false},
        {MANY,                   ALICE PREFIX("u"),        false},
        {MANY,                   ALICE PREFIX("ux"),       true },
        {ALICE PREFIX("u{uid}"), BOB PREFIX("u{uid}"),     true }, /* u1000 and u1001 */
        {ALICE PREFIX("u{uid}"), MANY,                     false},
        {MANY,                   MANY PREFIX("u1{uid}-"),  false},
        {MANY,                   MANY PREFIX("v{uid}-"),   true },
        {MANY,                   MANY PREFIX("u{uid}-x-"), false},
        {CAROL PREFIX("c-"),     BOB PREFIX("c-"),         false}, /* she may be created later */
        {CAROL PREFIX("c{uid}"), BOB PREFIX("c5"),         false},
};

static void test_prefixes(struct world *world)
{
        for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
                use_two(world, pairs[i].one, pairs[i].other, pairs[i].good ? 0 : -EINVAL);
}

static void test_a_rule_for_many_keeps_its_users_apart(struct world *world)
{
        static const char *const templates[] = {"u{uid}", "u{uid}0-", "team-"};
        char text[256];

        for (size_t i = 0; i < sizeof(templates) / sizeof(templates[0]); i++) {
                snprintf(text, sizeof(text), "{\"rules\":[{\"name\":\"a\"," MANY ",\"namePrefix\":\"%s\"}]}",
                        templates[i]);
                world_use(world, text, -EINVAL);
                world_check_fault(world, 0, "", "50.json", 1);
                snprintf(text, sizeof(text), "{\"rules\":[{\"name\":\"a\"," ALICE ",\"namePrefix\":\"%s\"}]}",
                        templates[i]);
                world_use(world, text, 0);
        }
}

static void test_one_user_and_a_group_are_many(struct world *world)
{
        world_use(world,
                "{\"rules\":[{\"name\":\"a\",\"who\":{\"users\":[\"alice\"],\"groups\":[50]},\"namePrefix\":"
                "\"team-\"}]}",
                -EINVAL);
        world_check_fault(world, 0, "", "50.json", 1);
        world_use(world,
                "{\"rules\":[{\"name\":\"a\",\"who\":{\"users\":[\"alice\", 7]},\"namePrefix\":\"team-\"}]}",
                -EINVAL);
}

static void test_names(struct world *world)
{
        world_write(world, "60.json", "{\"rules\":[{\"name\":\"r\"," MANY "}]}");
        world_use_rule(world, "", -EINVAL);
        world_check_fault(world, 0, "", "60.json", 1);
        world_write(world, "60.json", "{\"pools\":{\"fast\":{\"directory\":\"/a\"}}}");
        world_use(world, "{\"pools\":{\"fast\":{\"directory\":\"/b\"}}}", -EINVAL);
        world_check_fault(world, 0, "/pools/fast", "60.json", 1);
}

int main(void)
{
        struct world world;

        world_open(&world);
        test_prefixes(&world);
        test_a_rule_for_many_keeps_its_users_apart(&world);
        test_one_user_and_a_group_are_many(&world);
        test_names(&world);
        world_close(&world);
        return check_report();
}
