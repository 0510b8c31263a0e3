/* SPDX-License-Identifier: MIT */
/* The crash judge finds what is wrong with a volatile cache, wherever that stands in a tree of targets: alone, below a part, or in
 * one leg of a stripe. The same trees pass with a cache that is right. */
#include "targets/known/known_targets.h"
#include "tests/crash/crash.h"
#include "targets/fault/fault.h"
#include "targets/worker/disk/registry.h"
#include "tests/target/target_host.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"

enum { RUNS_MAX = 40, SOUND_RUNS = 1 };

static uint64_t seed;

/* The target `fault`, which answers a flush from memory: its volatile cache keeps what was to be flushed. */
static struct target_desc flushless_desc;
static struct target flushless_target;

static int answer_from_memory(struct target_io *io)
{
        (void)io;
        return 0;
}

/* The same target, whose disk announces no cache, although it has one. */
static struct target_desc silent_desc;
static struct target silent_target;

/* The kernel sends no flush to a disk that announces no cache. */
static int open_silent(
        struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        int r = fault_target.open(device, ret, problems);

        ret->volatile_cache = false;
        return r;
}

/* The same, but its cache is in the worker's own memory. */
static struct target_desc careless_desc;
static struct target careless_target;

static int start_without_kept(struct target_queue *queue)
{
        queue->device->kept = (struct target_kept){};
        return fault_target.start_queue(queue);
}

static void make(const char *name, struct target_desc *desc, struct target *target)
{
        *desc = *fault_target.desc;
        desc->name = name;
        *target = fault_target;
        target->desc = desc;
}

static void make_all(void)
{
        make("flushless", &flushless_desc, &flushless_target);
        flushless_target.flush = answer_from_memory;
        make("silent", &silent_desc, &silent_target);
        silent_target.open = open_silent;
        make("careless", &careless_desc, &careless_target);
        careless_target.start_queue = start_without_kept;
}

/* The linker puts ours beside those of the worker. */
const struct target *__real_target_find(const char *name);
const struct target *__wrap_target_find(const char *name);
const struct target_desc *__real_known_target_find(const char *name);
const struct target_desc *__wrap_known_target_find(const char *name);

static const struct target *ours(const char *name)
{
        static const struct target *const all[] = {&flushless_target, &silent_target, &careless_target};

        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                if (strcmp(name, all[i]->desc->name) == 0)
                        return all[i];
        return NULL;
}

const struct target *__wrap_target_find(const char *name)
{
        const struct target *target = ours(name);

        return target ? target : __real_target_find(name);
}

const struct target_desc *__wrap_known_target_find(const char *name)
{
        const struct target *target = ours(name);

        return target ? target->desc : __real_known_target_find(name);
}

/* Where the cache stands. */
enum tree { TREE_ALONE, TREE_PART, TREE_LEG, _TREE_MAX };

static const struct {
        const char *name, *before, *after; /* of the target with the cache */
        unsigned files;
        uint64_t file_size; /* bytes; each read looks through the whole cache for each block */
} trees[_TREE_MAX] = {
        [TREE_ALONE] = {.name = "alone",        .before = "",                           .after = "", .files = 1, .file_size = 16 * 1024},
        [TREE_PART] = {.name = "below a part",
                        .before = "{\"type\":\"linear\",\"offset\":4608,\"child\":",
                        .after = "}",
                        .files = 1,
                        .file_size = 16 * 1024                                                                                         },
        [TREE_LEG] = {.name = "in one leg",
                        .before = "{\"type\":\"stripe\",\"chunk\":4096,\"children\":[",
                        .after = ",{\"type\":\"loop\",\"path\":\"@1\"}]}",
                        .files = 2,
                        .file_size = 8 * 1024                                                                                          },
};

static void judge(enum tree tree, const char *type, bool sound, struct crash_result *ret)
{
        char spec[512];
        const struct crash_case crash = {
                .name = type, .spec = spec, .files = trees[tree].files, .file_size = trees[tree].file_size};
        const struct crash_effort effort = {
                .seed = seed, .seeds = sound ? SOUND_RUNS : RUNS_MAX, .quiet = !sound};

        snprintf(spec, sizeof(spec),
                "{\"target\":%s{\"type\":\"%s\",\"volatileCache\":true,\"child\":{\"type\":\"loop\",\"path\":"
                "\"@0\"}}%s}",
                trees[tree].before, type, trees[tree].after);
        *ret = (struct crash_result){};
        CHECK_INT(crash_judge(&crash, &effort, ret), 0);
        printf("%s %s: %s in run %ju\n", type, trees[tree].name, crash_verdict_name(ret->verdict),
                (uintmax_t)ret->runs);
}

static void test_a_cache_that_is_right_passes(void)
{
        for (enum tree tree = 0; tree < _TREE_MAX; tree++) {
                struct crash_result result;

                judge(tree, "fault", true, &result);
                CHECK_STR(crash_verdict_name(result.verdict), "passed");
        }
}

static void test_each_cache_that_is_wrong_is_found(void)
{
        static const struct {
                const char *type;
                enum crash_kind kind;
                bool trees[_TREE_MAX];
        } cases[] = {
                /* What a worker has acknowledged is in a memory that dies with it. */
                {"careless",  CRASH_WORKER_DEATH, {true, true, true} },
                {"flushless", CRASH_POWER_CUT,    {true, true, true} },
                /* The other leg announces a cache, so the whole stripe is flushed. */
                {"silent",    CRASH_POWER_CUT,    {true, true, false}},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (enum tree tree = 0; tree < _TREE_MAX; tree++) {
                        struct crash_result result;

                        if (!cases[i].trees[tree])
                                continue;
                        judge(tree, cases[i].type, false, &result);
                        CHECK_STR(crash_verdict_name(result.verdict), "lost");
                        CHECK_INT(result.kind, cases[i].kind);
                }
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        seed = crash_draw_seed();
        printf("UBLKD_TEST_SEED=%ju\n", (uintmax_t)seed);
        make_all();
        test_a_cache_that_is_right_passes();
        test_each_cache_that_is_wrong_is_found();
        if (check_failures > 0)
                fprintf(stderr, "again with UBLKD_TEST_SEED=%ju\n", (uintmax_t)seed);
        return check_report();
}
