/* SPDX-License-Identifier: MIT */
/* The crash judge finds what is wrong with kept memory of several queues, after the death of the worker and after a power cut;
 * and nothing where each queue has its own part in what is right. */
#include "targets/known/known_targets.h"
#include "targets/worker/disk/registry.h"
#include "tests/crash/crash.h"
#include "tests/crash/crash_ahead.h"
#include "tests/target/target_host.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"

#include <errno.h>

enum { RUNS_MAX = 40, SOUND_RUNS = 2, FILE_BYTES = 16 * 1024 };

static uint64_t seed;

/* The linker puts ours beside those of the worker. */
const struct target *__real_target_find(const char *name);
const struct target *__wrap_target_find(const char *name);
const struct target_desc *__real_known_target_find(const char *name);
const struct target_desc *__wrap_known_target_find(const char *name);

const struct target *__wrap_target_find(const char *name)
{
        return strcmp(name, ahead_target.desc->name) == 0 ? &ahead_target : __real_target_find(name);
}

const struct target_desc *__wrap_known_target_find(const char *name)
{
        return strcmp(name, ahead_target.desc->name) == 0 ? ahead_target.desc
                                                          : __real_known_target_find(name);
}

static void judge(enum ahead_fault fault, unsigned queues, bool sound, struct crash_result *ret)
{
        char spec[256];
        const struct crash_case crash = {.name = ahead_fault_name(fault),
                .spec = spec,
                .files = 1,
                .file_size = FILE_BYTES,
                .queues = queues};
        const struct crash_effort effort = {
                .seed = seed, .seeds = sound ? SOUND_RUNS : RUNS_MAX, .quiet = !sound};

        snprintf(spec, sizeof(spec), "{\"target\":{\"type\":\"ahead\",\"path\":\"@0\",\"fault\":\"%s\"}}",
                crash.name);
        *ret = (struct crash_result){};
        CHECK_INT(crash_judge(&crash, &effort, ret), 0);
        printf("%s, %u queues: %s in run %ju, %ju images\n", crash.name, queues,
                crash_verdict_name(ret->verdict), (uintmax_t)ret->runs, (uintmax_t)ret->images);
}

static void test_what_is_right_passes(void)
{
        static const struct {
                enum ahead_fault fault;
                unsigned queues;
        } cases[] = {
                {AHEAD_SOUND,           1},
                {AHEAD_SOUND,           2},
                {AHEAD_SOUND,           3},
                {AHEAD_REPLAYS_ONE_LOG, 1},
                {AHEAD_COUNTS_BY_QUEUE, 1},
                {AHEAD_REPLAYS_SETTLED, 1},
                {AHEAD_FLUSHES_OWN_LOG, 1},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct crash_result result;

                judge(cases[i].fault, cases[i].queues, true, &result);
                CHECK_STR(crash_verdict_name(result.verdict), "passed");
                CHECK(result.images > 10 * result.runs);
        }
}

static void test_each_fault_is_found(void)
{
        static const struct {
                enum ahead_fault fault;
                unsigned queues;
                enum crash_kind kind;
        } cases[] = {
                {AHEAD_APPENDS_LATE,    2, CRASH_WORKER_DEATH},
                {AHEAD_SETTLES_FIRST,   2, CRASH_WORKER_DEATH},
                {AHEAD_REPLAYS_ONE_LOG, 2, CRASH_WORKER_DEATH},
                {AHEAD_REPLAYS_ONE_LOG, 3, CRASH_WORKER_DEATH},
                {AHEAD_COUNTS_BY_QUEUE, 2, CRASH_WORKER_DEATH},
                {AHEAD_REPLAYS_SETTLED, 2, CRASH_WORKER_DEATH},
                {AHEAD_FLUSHES_OWN_LOG, 2, CRASH_POWER_CUT   },
                {AHEAD_FLUSHES_OWN_LOG, 3, CRASH_POWER_CUT   },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct crash_result result;

                judge(cases[i].fault, cases[i].queues, false, &result);
                CHECK_STR(crash_verdict_name(result.verdict), "lost");
                CHECK_INT(result.kind, cases[i].kind);
        }
}

static void test_queues_of_a_target_that_keeps_memory_and_has_one_are_refused(void)
{
        static const struct crash_case crash = {.name = "a cache for one queue",
                .spec = "{\"target\":{\"type\":\"fault\",\"volatileCache\":true,\"child\":{\"type\":\"loop\","
                        "\"path\":\"@0\"}}}",
                .files = 1,
                .file_size = FILE_BYTES,
                .queues = 2};
        struct crash_result result;

        CHECK_INT(crash_judge(&crash, &(struct crash_effort){.seed = seed, .quiet = true}, &result),
                -EOPNOTSUPP);
        CHECK_INT(result.images, 0);
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        seed = crash_draw_seed();
        printf("UBLKD_TEST_SEED=%ju\n", (uintmax_t)seed);
        test_what_is_right_passes();
        test_each_fault_is_found();
        test_queues_of_a_target_that_keeps_memory_and_has_one_are_refused();
        if (check_failures > 0)
                fprintf(stderr, "again with UBLKD_TEST_SEED=%ju\n", (uintmax_t)seed);
        return check_report();
}
