/* SPDX-License-Identifier: MIT */
/* policy_load: several files are one policy, or none. */
#include "ublkd/policy/policy_load.h"

#include "tests/unit/ublkd/policy/policy_world.h"

#include <errno.h>

static void test_no_directory_is_an_empty_policy(struct world *world)
{
        world_load(world, 0);
        CHECK_INT(world->policy->rule_count, 0);
        CHECK_STR(world->policy->directory, world->directory);
}

static void test_files_are_one_policy(struct world *world)
{
        char place[256];

        world_write(world, "20.json",
                "{\"rules\":[\n {\"name\":\"second\",\"who\":{\"users\":[1000]},\"pools\":[\"fast\"]}]}");
        world_write(world, "10.json", "{\"rules\":[{\"name\":\"first\",\"who\":{\"users\":[1000]}}]}");
        world_write(world, "30.json", "{\"pools\":{\"fast\":{\"directory\":\"/srv/fast\"}}}");
        world_load(world, 0);
        if (!CHECK_INT(world->policy->rule_count, 2))
                return;
        CHECK_STR(world->policy->rules[0].options.name, "first");
        snprintf(place, sizeof(place), "%s/20.json:2", world->directory);
        CHECK_STR(world->policy->rules[1].place, place);
        CHECK_STR(policy_pool(world->policy, "fast")->directory, "/srv/fast");
        CHECK(!policy_pool(world->policy, "slow"));
        CHECK_INT(world->policy->notes.count, 0);
}

static void test_a_bad_file_spoils_all(struct world *world)
{
        world_write(world, "40.json", "{\"rules\":[}");
        world_load(world, -EINVAL);
        world_check_fault(world, 0, "", "40.json", 1);
}

int main(void)
{
        struct world world;

        world_open(&world);
        test_no_directory_is_an_empty_policy(&world);
        test_files_are_one_policy(&world);
        test_a_bad_file_spoils_all(&world);
        world_close(&world);
        return check_report();
}
