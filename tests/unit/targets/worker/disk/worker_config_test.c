/* SPDX-License-Identifier: MIT */
/* What the worker takes out of a CONFIG message. */
#include "targets/loop/loop_options.h"
#include "targets/worker/disk/config.h"
#include "targets/worker/disk/registry.h"
#include "tests/unit/check.h"

static int parse(const char *spec, struct worker_config *config, struct problem_list *problems)
{
        struct worker_msg msg = {
                .type = WORKER_MSG_CONFIG,
                .config = {.name = (char *)(uintptr_t) "data",
                           .uid = (char *)(uintptr_t) "some-uid",
                           .epoch = 7,
                           .spec = (char *)(uintptr_t)spec,
                           .queues = 2,
                           .queue_depth = 64,
                           .max_io_size = 1 << 20}
        };

        return worker_config_parse(&msg, config, problems);
}

static void test_all_fields(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct worker_config config = {};
        const struct loop_options *options;

        CHECK_INT(parse("{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"path\":\"/a/"
                        "b\",\"offset\":\"1MiB\","
                        "\"directIo\":\"on\"},\"size\":\"1GiB\",\"blockSize\":4096,\"readOnly\":true,"
                        "\"cpus\":\"0-2,5\",\"labels\":{\"a\":\"b\"},\"someday\":{\"a\":[1,2]}}",
                          &config, &problems),
                0);
        CHECK_INT(problems.count, 0);
        CHECK_STR(config.name, "data");
        CHECK_STR(config.uid, "some-uid");
        CHECK_INT(config.epoch, 7);
        CHECK_INT(config.wish.size, 1 << 30);
        CHECK_INT(config.wish.block_size, 4096);
        CHECK(config.wish.read_only);
        CHECK_INT(config.wish.queues, 2);
        CHECK_INT(config.wish.queue_depth, 64);
        CHECK(config.cpus_given);
        CHECK_INT(CPU_COUNT(&config.cpus), 4);
        CHECK(CPU_ISSET(5, &config.cpus) && !CPU_ISSET(3, &config.cpus));
        CHECK_STR(config.target->desc->name, "loop");
        options = config.options;
        CHECK_STR(options->path, "/a/b");
        CHECK_INT(options->offset, 1 << 20);
        CHECK_INT(options->direct_io, DIRECT_IO_ON);
        worker_config_clear(&config);
        worker_config_clear(&config);
}

static void test_defaults(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct worker_config config = {};

        CHECK_INT(parse("{\"target\":{\"type\":\"null\"}}", &config, &problems), 0);
        CHECK_INT(config.wish.size, 0);
        CHECK_INT(config.wish.block_size, 0);
        CHECK(!config.wish.read_only && !config.cpus_given);
        CHECK_STR(config.target->desc->name, "null");
        worker_config_clear(&config);
}

static void test_faults(void)
{
        static const struct {
                const char *spec, *pointer;
        } cases[] = {
                {"",                                                            ""            },
                {"[]",                                                          ""            },
                {"{}",                                                          "/target"     },
                {"{\"target\":{\"type\":\"nothing\"}}",                         "/target/type"},
                {"{\"target\":{\"path\":\"/a\"}}",                              "/target/type"},
                {"{\"target\":{\"type\":\"loop\",\"path\":7}}",                 "/target/path"},
                {"{\"target\":{\"type\":\"loop\",\"path\":\"/a\",\"what\":1}}", "/target/what"},
                {"{\"target\":{\"type\":\"null\"},\"size\":\"many\"}",          "/size"       },
                {"{\"target\":{\"type\":\"null\"},\"cpus\":\"3-1\"}",           "/cpus"       },
                {"{\"target\":{\"type\":\"null\"},\"cpus\":\"99999\"}",         "/cpus"       },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_problems_ struct problem_list problems = {};
                struct worker_config config = {};

                CHECK_INT(parse(cases[i].spec, &config, &problems), -EINVAL);
                if (CHECK(problems.count > 0))
                        CHECK_STR(problems.items[0].pointer, cases[i].pointer);
                worker_config_clear(&config);
        }
}

/* The linker puts ours in the place of the worker's: `linear` has no act(), which its verb needs. */
static bool without_act;
const struct target *__real_target_find(const char *name);
const struct target *__wrap_target_find(const char *name);

const struct target *__wrap_target_find(const char *name)
{
        static struct target incomplete;

        if (!without_act || strcmp(name, "linear") != 0)
                return __real_target_find(name);
        incomplete = *__real_target_find(name);
        incomplete.act = NULL;
        return &incomplete;
}

static void test_an_incomplete_target_is_refused(void)
{
        static const char spec[] = "{\"target\":{\"type\":\"fault\",\"child\":{\"type\":\"linear\",\"child\":"
                                   "{\"type\":\"null\"}}},\"size\":4096}";

        for (int i = 0; i < 2; i++) {
                _cleanup_problems_ struct problem_list problems = {};
                struct worker_config config = {};

                without_act = i > 0;
                CHECK_INT(parse(spec, &config, &problems), without_act ? -EINVAL : 0);
                CHECK_INT(problems.count, without_act);
                if (problems.count > 0) {
                        CHECK_STR(problems.items[0].pointer, "/target/child/type");
                        CHECK_STR(problems.items[0].reason, "UnknownTarget");
                }
                worker_config_clear(&config);
        }
        without_act = false;
}

int main(void)
{
        test_all_fields();
        test_defaults();
        test_faults();
        test_an_incomplete_target_is_refused();
        return check_report();
}
