/* SPDX-License-Identifier: MIT */
/* policy_parse: what a file may say, and where its faults are. */
#include "ublkd/policy/policy_parse.h"

#include "tests/unit/ublkd/policy/policy_world.h"

#include <errno.h>

/* A rule that says nothing gives nothing away but what a spec that says nothing has. */
static void test_defaults(struct world *world)
{
        const struct policy_rule *rule;

        world_use_rule(world, "", 0);
        if (!world->policy)
                return;
        rule = &world->policy->rules[0];
        CHECK_INT(rule->options.devices, 0);
        CHECK_INT(rule->options.size, 0);
        CHECK_STR(rule->options.name_prefix, "u{uid}-");
        CHECK_INT(rule->options.queues, QUEUES_AUTO_MAX);
        CHECK_INT(rule->options.queue_depth, 128);
        CHECK_INT(rule->options.max_io_size, 1 << 20);
        CHECK_INT(rule->options.busy_poll_us, 0);
        CHECK(!rule->options.targets && !rule->options.pools && !rule->options.cpus);
        CHECK_INT(rule->ids_first, -1);
        CHECK(rule->is_for_one);
}

static void test_values(struct world *world)
{
        const struct policy_rule *rule;

        world_use_rule(world,
                "\"targets\":[\"loop\",\"null\"],\"devices\":10,\"size\":\"100GiB\",\"ids\":\"100-199\","
                "\"cpus\":\"0-1,9\",\"limits\":{\"read\":{\"iops\":100,\"iopsBurst\":500}},"
                "\"resources\":{\"ioMax\":{\"write\":{\"bytesPerSec\":\"1MiB\"}}}",
                0);
        if (!world->policy)
                return;
        rule = &world->policy->rules[0];
        CHECK_INT(rule->ids_first, 100);
        CHECK_INT(rule->ids_last, 199);
        CHECK_INT(rule->cpus[0], 3);
        CHECK_INT(rule->cpus[1], 2);
        CHECK_INT(rule->options.limits.read.iops_burst, 500);
        CHECK_INT(rule->options.resources.io_max.write.bytes_per_sec, 1 << 20);
        world_use_rule(world, "\"ids\":\"7\"", 0);
        CHECK_INT(world->policy->rules[0].ids_last, 7);
}

static const struct {
        const char *text, *pointer;
} faults[] = {
        {"{\"ruls\":[]}",                                                         "/ruls"                   },
        {"[]",                                                                    ""                        },
        {"{\"rules\":{}}",                                                        "/rules"                  },
        {"{\"rules\":[1]}",                                                       "/rules/0"                },
        {"{\"rules\":[{\"who\":{\"users\":[1]}}]}",                               "/rules/0/name"           },
        {"{\"rules\":[{\"name\":\"r\"}]}",                                        "/rules/0/who"            },
        {"{\"rules\":[{\"name\":\"r\",\"who\":{}}]}",                             "/rules/0/who"            },
        {"{\"rules\":[{\"name\":\"r\",\"who\":{\"users\":[]}}]}",                 "/rules/0/who"            },
        {"{\"rules\":[{\"name\":\"r\",\"who\":{\"users\":[0]}}]}",                "/rules/0/who/users/0"    },
        {"{\"rules\":[{\"name\":\"r\",\"who\":{\"users\":[1,true]}}]}",           "/rules/0/who/users/1"    },
        {"{\"rules\":[{\"name\":\"r\",\"who\":{\"users\":[1.5]}}]}",              "/rules/0/who/users/0"    },
        {"{\"rules\":[{\"name\":\"r\",\"who\":{\"groups\":[4294967295]}}]}",      "/rules/0/who/groups/0"   },
        {"{\"rules\":[{\"name\":\"r\",\"who\":{\"subuidsOf\":[1000]}}]}",         "/rules/0/who/subuidsOf/0"},
        {"{\"rules\":[{\"name\":\"r\",\"who\":{\"user\":[1]}}]}",                 "/rules/0/who/user"       },
        {"{\"rules\":[{\"name\":\"r\",\"name\":\"s\",\"who\":{\"users\":[1]}}]}", "/rules/0/name"           },
        {"{\"pools\":{\"fast\":{}}}",                                             "/pools/fast/directory"   },
        {"{\"pools\":{\"fast\":{\"directory\":\"srv\"}}}",                        "/pools/fast/directory"   },
        {"{\"pools\":{\"Fast\":{\"directory\":\"/srv\"}}}",                       "/pools/Fast"             },
};

static const struct {
        const char *rest, *pointer;
} rule_faults[] = {
        {"\"colour\":1",                                      "/rules/0/colour"             },
        {"\"targets\":[\"null\",\"lop\"]",                    "/rules/0/targets/1"          },
        {"\"targets\":\"loop\"",                              "/rules/0/targets"            },
        {"\"directories\":[\"/a\",\"b\"]",                    "/rules/0/directories/1"      },
        {"\"directories\":[\"/a/\"]",                         "/rules/0/directories/0"      },
        {"\"directories\":[\"/a/../b\"]",                     "/rules/0/directories/0"      },
        {"\"devices\":-1",                                    "/rules/0/devices"            },
        {"\"size\":\"lots\"",                                 "/rules/0/size"               },
        {"\"queues\":0",                                      "/rules/0/queues"             },
        {"\"queues\":\"auto\"",                               "/rules/0/queues"             },
        {"\"namePrefix\":\"-a\"",                             "/rules/0/namePrefix"         },
        {"\"namePrefix\":\"A\"",                              "/rules/0/namePrefix"         },
        {"\"namePrefix\":\"a{gid}-\"",                        "/rules/0/namePrefix"         },
        {"\"namePrefix\":\"{uid}-{uid}-\"",                   "/rules/0/namePrefix"         },
        {"\"namePrefix\":\"\"",                               "/rules/0/namePrefix"         },
        {"\"namePrefix\":\"a/\"",                             "/rules/0/namePrefix"         },
        {"\"ids\":\"9-8\"",                                   "/rules/0/ids"                },
        {"\"ids\":\"0-1048576\"",                             "/rules/0/ids"                },
        {"\"ids\":\"a\"",                                     "/rules/0/ids"                },
        {"\"cpus\":\"3-1\"",                                  "/rules/0/cpus"               },
        {"\"cpus\":\"4096\"",                                 "/rules/0/cpus"               },
        {"\"limits\":{\"read\":{\"iopsBurst\":5}}",           "/rules/0/limits/read"        },
        {"\"limits\":{\"write\":{\"bytesPerSecBurst\":512}}", "/rules/0/limits/write"       },
        {"\"resources\":{\"memoryMax\":1}",                   "/rules/0/resources/memoryMax"},
        {"\"pools\":[\"fast\"]",                              ""                            },
        {"\"namePrefix\":\"\\u0000\"",                        ""                            },
};

static void test_faults(struct world *world)
{
        for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
                world_use(world, faults[i].text, -EINVAL);
                world_check_fault(world, 0, faults[i].pointer, "50.json", 1);
                CHECK_INT(world->problems.count, 1);
        }
        for (size_t i = 0; i < sizeof(rule_faults) / sizeof(rule_faults[0]); i++) {
                world_use_rule(world, rule_faults[i].rest, -EINVAL);
                world_check_fault(world, 0, rule_faults[i].pointer, "50.json", 1);
                CHECK_INT(world->problems.count, 1);
        }
}

static void test_all_faults_at_once_with_their_lines(struct world *world)
{
        world_write(world, "60.json",
                "{\n\"rules\": [\n {\"name\": \"s\",\n  \"who\": {},\n  \"ids\": \"9-8\"}]}");
        world_use_rule(world, "\"targets\":[\"a\",\"b\"]", -EINVAL);
        CHECK_INT(world->problems.count, 4);
        world_check_fault(world, 0, "/rules/0/targets/0", "50.json", 1);
        world_check_fault(world, 2, "/rules/0/who", "60.json", 4);
        world_check_fault(world, 3, "/rules/0/ids", "60.json", 5);
        world_write(world, "60.json", "{}");
}

/* The rest of the rule counts. */
static void test_unknown_names_are_notes(struct world *world)
{
        world_use(world,
                "{\"rules\":[{\"name\":\"r\",\"who\":{\"users\":[\"carol\",\"root\",\"bob\"],\"groups\":["
                "\"nowhere\",\"root\"],"
                "\"subuidsOf\":[\"bob\",\"alice\"]}}]}",
                0);
        if (!world->policy)
                return;
        CHECK_INT(world->policy->notes.count, 5);
        for (size_t i = 0; i < world->policy->notes.count; i++)
                CHECK_STR(world->policy->notes.items[i].reason, "PolicyNameUnknown");
        CHECK_INT(world->policy->rules[0].uid_count, 2);
        CHECK_INT(world->policy->rules[0].uids[0].first, 1001);
        CHECK_INT(world->policy->rules[0].gid_count, 0);
        CHECK(!world->policy->rules[0].is_for_one);
}

#define MEMORY(text) ",\n\"resources\":{\"memoryMax\":\"" text "\"}"

static void use_memory(struct world *world, const char *rest, bool too_low)
{
        static const char start[] = ":2: /rules/0/resources/memoryMax: ";
        char text[256];

        snprintf(text, sizeof(text), "\"targets\":[\"null\"]%s", rest);
        world_use_rule(world, text, 0);
        if (!world->policy || !CHECK_INT(world->policy->notes.count, too_low) || !too_low)
                return;
        CHECK(strstr(world->policy->notes.items[0].detail, start));
        check_one_problem(&world->policy->notes, "PolicyMemoryTooLow", "/rules/0/resources/memoryMax");
}

/* A worker needs 16 MiB beside its requests: one of 4 KiB, at least. */
static void test_a_ceiling_that_no_device_can_keep_is_noted(struct world *world)
{
        use_memory(world, ",\"devices\":1" MEMORY("16MiB"), true);
        use_memory(world, ",\"devices\":1" MEMORY("16387KiB"), true);
        use_memory(world, ",\"devices\":1" MEMORY("16388KiB"), false);
        use_memory(world, ",\"devices\":1,\"waiting\":true" MEMORY("16MiB"), false);
        use_memory(world, MEMORY("16MiB"), false); /* it refuses on purpose */
        use_memory(world, ",\"devices\":1", false);
}

static void test_accounts_that_cannot_be_read(struct world *world)
{
        world->accounts.passwd = "/dev/null";
        world_use(world, "{\"rules\":[{\"name\":\"r\",\"who\":{\"users\":[1, \"bob\"]}}]}", -EINVAL);
        world_check_fault(world, 0, "/rules/0/who/users/1", "50.json", 1);
        world->accounts.passwd = world->passwd;
}

int main(void)
{
        struct world world;

        world_open(&world);
        test_defaults(&world);
        test_values(&world);
        test_faults(&world);
        test_all_faults_at_once_with_their_lines(&world);
        test_unknown_names_are_notes(&world);
        test_a_ceiling_that_no_device_can_keep_is_noted(&world);
        test_accounts_that_cannot_be_read(&world);
        world_close(&world);
        return check_report();
}
