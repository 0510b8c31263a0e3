/* SPDX-License-Identifier: MIT */
/* Tests of the crash judge: it finds each fault that targets for tests have, within a bounded number of runs, and none
 * in the same targets without one. */
#include "targets/known/known_targets.h"
#include "tests/crash/crash.h"
#include "targets/linear/linear.h"
#include "targets/null/null.h"
#include "targets/stripe/stripe.h"
#include "targets/worker/disk/registry.h"
#include "tests/crash/crash_pair.h"
#include "tests/crash/crash_slots.h"
#include "tests/target/target_host.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"

#include <errno.h>

enum { RUNS_MAX = 40 };

static uint64_t seed;

/* The target of tests/kernel/keeping, which is linked in the place of null: here it answers a write, and appends it to its log
 * when the next request comes. */
static struct target_desc late_desc;
static struct target late_target;
static struct target_io late_write;
static char late_data[HOST_DATA_SIZE];

static int append_what_was_answered(struct target_io *io)
{
        struct target_io write = late_write;

        late_write.length = 0;
        write.queue = io->queue;
        return write.length > 0 && null_target.write(&write) < 0 ? -EIO : 0;
}

static int write_late(struct target_io *io)
{
        int r = append_what_was_answered(io);

        late_write = *io;
        late_write.data = memcpy(late_data, io->data, io->length);
        return r < 0 ? r : (int)io->length;
}

static int read_late(struct target_io *io)
{
        int r = append_what_was_answered(io);

        return r < 0 ? r : null_target.read(io);
}

static int start_late(struct target_queue *queue)
{
        late_write.length = 0; /* it died with its worker */
        return null_target.start_queue(queue);
}

/* The target `linear`, which has the core move plain requests to another place than its own. */
static struct target_desc crooked_desc;
static struct target crooked_target;

static bool part_beside(const struct target_device *device, uint64_t *ret)
{
        bool is_part = linear_target.is_part(device, ret);

        *ret += CRASH_SECTOR;
        return is_part;
}

/* The target `stripe`, which does the same with those that lie in one chunk. */
static struct target_desc astray_desc;
static struct target astray_target;

static bool divide_beside(const struct target_io *io, struct target_cursor *cursor, struct target_part *ret)
{
        bool there = stripe_target.divide(io, cursor, ret);

        ret->offset += CRASH_SECTOR;
        return there;
}

/* The linker puts ours beside those of the worker. */
const struct target *__real_target_find(const char *name);
const struct target *__wrap_target_find(const char *name);
const struct target_desc *__real_known_target_find(const char *name);
const struct target_desc *__wrap_known_target_find(const char *name);

static const struct target *ours(const char *name)
{
        static const struct target *const all[] = {
                &pair_target, &slots_target, &late_target, &crooked_target, &astray_target};

        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                if (all[i]->desc && strcmp(name, all[i]->desc->name) == 0)
                        return all[i];
        return NULL;
}

/* A stripe that flushes its first child only. */
static bool skips_a_child;

static bool divide_for_the_first(
        const struct target_io *io, struct target_cursor *cursor, struct target_part *ret)
{
        (void)io;
        *ret = (struct target_part){.child = 0};
        return cursor->child++ == 0;
}

static int flush_the_first(struct target_io *io)
{
        return await_parts(io, divide_for_the_first);
}

static const struct target *skipping(void)
{
        static struct target target;

        target = stripe_target;
        target.flush = flush_the_first;
        return &target;
}

const struct target *__wrap_target_find(const char *name)
{
        const struct target *target = ours(name);

        if (skips_a_child && strcmp(name, "stripe") == 0)
                return skipping();
        return target ? target : __real_target_find(name);
}

const struct target_desc *__wrap_known_target_find(const char *name)
{
        const struct target *target = ours(name);

        return target ? target->desc : __real_known_target_find(name);
}

static struct crash_case pair_case(char *spec, size_t size, enum pair_fault fault)
{
        snprintf(spec, size,
                "{\"target\":{\"type\":\"pair\",\"first\":\"@0\",\"second\":\"@1\",\"fault\":\"%s\"}}",
                pair_fault_name(fault));
        return (struct crash_case){
                .name = pair_fault_name(fault), .spec = spec, .files = 2, .file_size = 64 * 1024};
}

static int judge(const struct crash_case *crash, uint64_t seeds, bool quiet, struct crash_result *ret)
{
        return crash_judge(crash, &(struct crash_effort){.seed = seed, .seeds = seeds, .quiet = quiet}, ret);
}

static void test_a_sound_target_passes(void)
{
        char spec[256];
        struct crash_case crash = pair_case(spec, sizeof(spec), PAIR_SOUND);
        struct crash_result result;

        CHECK_INT(judge(&crash, RUNS_MAX / 4, false, &result), 0);
        CHECK_STR(crash_verdict_name(result.verdict), "passed");
        CHECK_INT(result.runs, RUNS_MAX / 4);
        CHECK(result.images > 10 * result.runs);
        CHECK(result.overtaken > 10 * result.runs);
}

static void test_each_fault_is_found(void)
{
        enum { ANY = _CRASH_KIND_MAX };
        static const struct {
                enum pair_fault fault;
                unsigned verdicts; /* bits */
                unsigned kind;
        } cases[] = {
                {PAIR_ANSWERS_FROM_MEMORY, 1 << CRASH_LOST,                    CRASH_WORKER_DEATH},
                {PAIR_FLUSHES_NOTHING,     1 << CRASH_LOST,                    CRASH_POWER_CUT   },
                {PAIR_IGNORES_FUA,         1 << CRASH_LOST,                    CRASH_POWER_CUT   },
                {PAIR_FLUSHES_ONE_FILE,    1 << CRASH_LOST,                    CRASH_POWER_CUT   },
                {PAIR_DISCARDS_LATE,       1 << CRASH_LOST | 1 << CRASH_LIED,  ANY               },
                {PAIR_JOINS_FLUSHES,       1 << CRASH_LOST,                    CRASH_POWER_CUT   },
                {PAIR_READS_STALE,         1 << CRASH_LIED,                    ANY               },
                {PAIR_HIDES_WRITES,        1 << CRASH_BLIND | 1 << CRASH_LOST, ANY               },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char spec[256];
                struct crash_case crash = pair_case(spec, sizeof(spec), cases[i].fault);
                struct crash_result result;

                /* What a read finds there before the discard is done does not count for this one. */
                crash.discard_is_undefined = cases[i].fault == PAIR_DISCARDS_LATE;
                if (!CHECK_INT(judge(&crash, RUNS_MAX, true, &result), 0))
                        continue;
                printf("%s: %s in run %ju\n", crash.name, crash_verdict_name(result.verdict),
                        (uintmax_t)result.runs);
                if (!CHECK(cases[i].verdicts & 1U << result.verdict))
                        fprintf(stderr, "  of a target that has the fault %s: %s\n", crash.name,
                                crash_verdict_name(result.verdict));
                if (cases[i].kind != ANY)
                        CHECK_INT(result.kind, cases[i].kind);
        }
}

/* Only an image that has the pointer and lacks the data shows it: neither what is certain nor all that was done. */
static void test_a_missing_barrier_is_found(void)
{
        static const char *const specs[] = {
                "{\"target\":{\"type\":\"slots\",\"data\":\"@0\",\"map\":\"@1\",\"barrier\":true}}",
                "{\"target\":{\"type\":\"slots\",\"data\":\"@0\",\"map\":\"@1\"}}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
                const struct crash_case crash = {
                        .name = "slots", .spec = specs[i], .files = 2, .file_size = 64 * 1024};
                const struct crash_effort effort = {
                        .seed = seed, .seeds = i == 0 ? RUNS_MAX / 8 : RUNS_MAX, .depth = 1, .quiet = i > 0};
                struct crash_result result;

                CHECK_INT(crash_judge(&crash, &effort, &result), 0);
                CHECK_STR(crash_verdict_name(result.verdict), i == 0 ? "passed" : "lost");
                if (i > 0)
                        CHECK_INT(result.kind, CRASH_POWER_CUT);
                printf("%s a barrier: %s in run %ju\n", i == 0 ? "with" : "without",
                        crash_verdict_name(result.verdict), (uintmax_t)result.runs);
        }
}

static void make_late(void)
{
        late_desc = *null_target.desc;
        late_desc.name = "late";
        late_target = null_target;
        late_target.desc = &late_desc;
        late_target.start_queue = start_late;
        late_target.read = read_late;
        late_target.write = write_late;
        late_target.flush = append_what_was_answered;
}

static void make_crooked(void)
{
        crooked_desc = *linear_target.desc;
        crooked_desc.name = "crooked";
        crooked_target = linear_target;
        crooked_target.desc = &crooked_desc;
        crooked_target.is_part = part_beside;
}

static void make_astray(void)
{
        astray_desc = *stripe_target.desc;
        astray_desc.name = "astray";
        astray_target = stripe_target;
        astray_target.desc = &astray_desc;
        astray_target.divide = divide_beside;
}

/* What a worker has acknowledged is stored into kept memory too late. */
static void test_the_next_worker_lacks_what_was_acknowledged(void)
{
        static const struct crash_case crash = {.name = "late",
                .spec = "{\"target\":{\"type\":\"late\"},\"size\":32768}",
                .deaths_only = true};
        struct crash_result result;

        make_late();
        CHECK_INT(judge(&crash, RUNS_MAX, true, &result), 0);
        CHECK_STR(crash_verdict_name(result.verdict), "lost");
        CHECK_INT(result.kind, CRASH_WORKER_DEATH);
        printf("%s: %s in run %ju\n", crash.name, crash_verdict_name(result.verdict), (uintmax_t)result.runs);
}

static void test_a_flush_that_skips_a_child_is_found(void)
{
        static const struct crash_case crash = {.name = "stripe",
                .spec = "{\"target\":{\"type\":\"stripe\",\"chunk\":4096,\"children\":[{\"type\":\"loop\","
                        "\"path\":\"@0\"},"
                        "{\"type\":\"loop\",\"path\":\"@1\"}]}}",
                .files = 2,
                .file_size = 64 * 1024};

        for (int skips = 0; skips <= 1; skips++) {
                struct crash_result result;

                skips_a_child = skips;
                CHECK_INT(judge(&crash, skips ? RUNS_MAX : RUNS_MAX / 8, skips, &result), 0);
                CHECK_STR(crash_verdict_name(result.verdict), skips ? "lost" : "passed");
                if (skips)
                        CHECK_INT(result.kind, CRASH_POWER_CUT);
        }
        skips_a_child = false;
}

/* Of requests that no callback of the target sees. */
static void test_faults_of_the_plain_way_are_found(void)
{
        static const struct {
                struct crash_case crash;
                unsigned verdicts; /* bits */
        } cases[] = {
                {.crash = {.name = "loop, plain",
                         .spec = "{\"target\":{\"type\":\"loop\",\"path\":\"@0\",\"directIo\":\"off\"}}",
                         .parent = "/var/tmp",
                         .files = 1,
                         .file_size = 64 * 1024,
                         .entry = CLIENT_PLAIN},
                 .verdicts = 1 << CRASH_PASSED                },
                {.crash = {.name = "answered before the write",
                         .spec = "{\"target\":{\"type\":\"loop\",\"path\":\"@0\",\"directIo\":\"off\"}}",
                         .parent = "/var/tmp",
                         .files = 1,
                         .file_size = 64 * 1024,
                         .entry = CLIENT_PLAIN_EARLY},
                 .verdicts = 1 << CRASH_LOST | 1 << CRASH_LIED},
                {.crash = {.name = "moved to another place",
                         .spec = "{\"target\":{\"type\":\"crooked\",\"offset\":4096,\"child\":{\"type\":"
                                 "\"loop\","
                                 "\"path\":\"@0\"}},\"size\":32768,\"blockSize\":512}",
                         .files = 1,
                         .file_size = 64 * 1024,
                         .entry = CLIENT_PLAIN},
                 .verdicts = 1 << CRASH_LOST | 1 << CRASH_LIED},
                {.crash = {.name = "moved to another place of a chunk",
                         .spec = "{\"target\":{\"type\":\"astray\",\"chunk\":4096,\"children\":[{\"type\":"
                                 "\"loop\","
                                 "\"path\":\"@0\"},{\"type\":\"loop\",\"path\":\"@1\"}]},\"size\":32768}",
                         .files = 2,
                         .file_size = 64 * 1024,
                         .entry = CLIENT_PLAIN},
                 .verdicts = 1 << CRASH_LOST | 1 << CRASH_LIED},
        };

        make_crooked();
        make_astray();
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                bool sound = cases[i].verdicts == 1 << CRASH_PASSED;
                struct crash_result result;

                CHECK_INT(judge(&cases[i].crash, sound ? RUNS_MAX / 8 : RUNS_MAX, !sound, &result), 0);
                CHECK(cases[i].verdicts & 1U << result.verdict);
                CHECK(result.plain > 0);
                printf("%s: %s in run %ju, with %ju plain requests\n", cases[i].crash.name,
                        crash_verdict_name(result.verdict), (uintmax_t)result.runs, (uintmax_t)result.plain);
        }
}

/* A flush of one queue is for what any of them has answered. */
static void test_a_flush_of_its_own_queue_is_found(void)
{
        static const struct {
                enum pair_fault fault;
                unsigned queues;
                enum crash_verdict verdict;
        } cases[] = {
                {PAIR_SOUND,              HOST_QUEUES_MAX, CRASH_PASSED},
                {PAIR_FLUSHES_OWN_WRITES, 1,               CRASH_PASSED},
                {PAIR_FLUSHES_OWN_WRITES, 2,               CRASH_LOST  },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                bool sound = cases[i].verdict == CRASH_PASSED;
                char spec[256];
                struct crash_case crash = pair_case(spec, sizeof(spec), cases[i].fault);
                struct crash_result result;

                crash.queues = cases[i].queues;
                CHECK_INT(judge(&crash, sound ? RUNS_MAX / 8 : RUNS_MAX, !sound, &result), 0);
                CHECK_STR(crash_verdict_name(result.verdict), crash_verdict_name(cases[i].verdict));
                if (!sound)
                        CHECK_INT(result.kind, CRASH_POWER_CUT);
                printf("%s, %u queues: %s in run %ju\n", crash.name, crash.queues,
                        crash_verdict_name(result.verdict), (uintmax_t)result.runs);
        }
}

/* What cannot be judged as the case asks for passes for nothing. */
static void test_a_case_that_asks_for_what_is_not_there_is_refused(void)
{
        static const struct crash_case cases[] = {
                {.name = "a plain way past a target that sees all",
                 .spec = "{\"target\":{\"type\":\"fault\",\"child\":{\"type\":\"loop\",\"path\":\"@"
                                "0\"}}}",                                                    .files = 1,
                 .file_size = 64 * 1024,
                 .entry = CLIENT_PLAIN},
                {.name = "queues of a target that has one",
                 .spec = "{\"target\":{\"type\":\"slots\",\"data\":\"@0\",\"map\":\"@1\"}}",
                 .files = 2,
                 .file_size = 64 * 1024,
                 .queues = 2          },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct crash_result result;

                CHECK_INT(judge(&cases[i], 1, true, &result), -EOPNOTSUPP);
                CHECK_INT(result.images, 0);
        }
}

/* Two sectors written around the beginning of a flush, and one durably. */
static void test_what_a_crash_leaves(void)
{
        enum { SIZE = 4 * CRASH_SECTOR, FLUSHED = 'f', LATE = 'l', DURABLE = 'd' };
        char bytes[3][CRASH_SECTOR];
        struct record_op ops[] = {
                {.kind = RECORD_WRITE,
                 .offset = 0,
                 .length = CRASH_SECTOR,
                 .data = bytes[0],
                 .begun = 1,
                 .done = 2},
                {.kind = RECORD_WRITE,
                 .offset = CRASH_SECTOR,
                 .length = CRASH_SECTOR,
                 .data = bytes[1],
                 .begun = 3,
                 .done = 5},
                {.kind = RECORD_FLUSH, .begun = 4, .done = 6},
                {.kind = RECORD_WRITE,
                 .offset = 2 * CRASH_SECTOR,
                 .length = CRASH_SECTOR,
                 .data = bytes[2],
                 .durable = true,
                 .begun = 7,
                 .done = 8},
        };
        size_t order[] = {0, 1, 2, 3};
        const struct record record = {
                .ops = ops, .count = ARRAY_SIZE(ops), .order = order, .ordered = ARRAY_SIZE(order)};
        static const struct {
                enum crash_kind kind;
                uint64_t moment;
                unsigned percent, undecided;
                const char *sectors; /* the first byte of each; '-' stands for 0 */
        } cases[] = {
                {CRASH_WORKER_DEATH, 1, 0,   1, "----"},
                {CRASH_WORKER_DEATH, 1, 100, 1, "f---"},
                {CRASH_WORKER_DEATH, 2, 0,   0, "f---"},
                {CRASH_WORKER_DEATH, 4, 0,   1, "f---"},
                {CRASH_WORKER_DEATH, 5, 0,   0, "fl--"},
                {CRASH_POWER_CUT,    5, 0,   2, "----"},
                {CRASH_POWER_CUT,    5, 100, 2, "fl--"},
                {CRASH_POWER_CUT,    6, 0,   1, "f---"},
                {CRASH_POWER_CUT,    7, 0,   2, "f---"},
                {CRASH_POWER_CUT,    8, 0,   1, "f-d-"},
        };
        struct crash_image image;

        memset(bytes[0], FLUSHED, CRASH_SECTOR);
        memset(bytes[1], LATE, CRASH_SECTOR);
        memset(bytes[2], DURABLE, CRASH_SECTOR);
        if (!CHECK_INT(image_init(&image, (const int[]){-1}, 1, SIZE), 0))
                return;
        image.files[0].base_size = SIZE;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[] = "????";

                CHECK_INT(image_make(&image, &record, cases[i].kind, cases[i].moment,
                                  &(struct crash_fate){.percent = cases[i].percent, .grain = CRASH_SECTOR}),
                        cases[i].undecided);
                for (size_t k = 0; k < sizeof(text) - 1; k++)
                        text[k] = image.files[0].made[k * CRASH_SECTOR]
                                          ? image.files[0].made[k * CRASH_SECTOR]
                                          : '-';
                if (!CHECK_STR(text, cases[i].sectors))
                        fprintf(stderr, "  in case %zu\n", i);
        }
        image_clear(&image);
}

static void test_a_seed_repeats_a_run(void)
{
        char spec[256];
        struct crash_case crash = pair_case(spec, sizeof(spec), PAIR_FLUSHES_ONE_FILE);
        struct crash_result first, again;

        CHECK_INT(judge(&crash, RUNS_MAX, true, &first), 0);
        CHECK_INT(judge(&crash, RUNS_MAX, true, &again), 0);
        CHECK_INT(again.seed, first.seed);
        CHECK_INT(again.judged, first.judged);
        CHECK_INT(again.images, first.images);
        CHECK(again.fingerprint == first.fingerprint && first.fingerprint != 0);
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        seed = crash_draw_seed();
        printf("UBLKD_TEST_SEED=%ju\n", (uintmax_t)seed);
        test_a_sound_target_passes();
        test_each_fault_is_found();
        test_a_missing_barrier_is_found();
        test_the_next_worker_lacks_what_was_acknowledged();
        test_a_flush_that_skips_a_child_is_found();
        test_faults_of_the_plain_way_are_found();
        test_a_flush_of_its_own_queue_is_found();
        test_a_case_that_asks_for_what_is_not_there_is_refused();
        test_what_a_crash_leaves();
        test_a_seed_repeats_a_run();
        if (check_failures > 0)
                fprintf(stderr, "again with UBLKD_TEST_SEED=%ju\n", (uintmax_t)seed);
        return check_report();
}
