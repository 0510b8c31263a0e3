/* SPDX-License-Identifier: MIT */
/* The action "scrub" of targets that stand on others: it reads the disk in its own order, and reports where on the disk a child cannot
 * be read. */
#include "targets/scrub/scrub.h"
#include "targets/scrub/scrub_desc.h"
#include "tests/target/scratch.h"
#include "tests/target/target_host.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"
#include "ublkd/proto/region_action.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES = 1 << 20, CHUNK = 4096, BLOCK = 4096 };

#define FAST (UINT64_C(1) << 40)
#define LOOP(PATH) "{\"type\":\"loop\",\"path\":\"" PATH "\"}"

struct bench {
        struct scratch scratch;
        char paths[2][320], spec[2048];
        struct target_host host;
};

static bool open_bench_of(struct bench *bench, const char *target, off_t size)
{
        _cleanup_problems_ struct problem_list problems = {};

        CHECK_INT(scratch_make(&bench->scratch, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"), 0);
        CHECK_INT(scratch_file(&bench->scratch, "one", FILE_BYTES, bench->paths[0], sizeof(bench->paths[0])),
                0);
        CHECK_INT(scratch_file(&bench->scratch, "two", FILE_BYTES, bench->paths[1], sizeof(bench->paths[1])),
                0);
        CHECK_INT(truncate(bench->paths[0], size), 0);
        CHECK_INT(truncate(bench->paths[1], size), 0);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(bench->spec, sizeof(bench->spec), target, bench->paths[0], bench->paths[1]);
#pragma GCC diagnostic pop
        return CHECK_INT(target_host_open(&bench->host, bench->spec, &problems), 0);
}

static bool open_bench(struct bench *bench, const char *target)
{
        return open_bench_of(bench, target, FILE_BYTES);
}

static void close_bench(struct bench *bench)
{
        target_host_close(&bench->host);
        scratch_remove(&bench->scratch);
}

static const struct region_action *scrub(struct bench *bench, unsigned verb, uint64_t id, uint64_t rate)
{
        const struct scrub_arguments arguments = {.rate = rate};

        CHECK_INT(target_host_act(&bench->host, id, verb, &arguments, sizeof(arguments)), 0);
        return &device_region_control(bench->host.shared.region)->action;
}

static bool has_range(const struct region_action *action, unsigned number, uint64_t offset, uint64_t length)
{
        return number < action->range_count && CHECK_INT(action->ranges[number].offset, offset)
               && CHECK_INT(action->ranges[number].length, length);
}

/* A part from 64 KiB on, whose store ends in the middle. */
static void test_a_part(void)
{
        const struct region_action *action;
        struct bench bench = {};

        if (open_bench(
                    &bench, "{\"target\":{\"type\":\"linear\",\"offset\":65536,\"child\":" LOOP("%s") "}}")) {
                action = scrub(&bench, 0, 5, FAST);
                CHECK(action->state == REGION_ACTION_DONE && action->found == 0);
                CHECK(action->done == FILE_BYTES - 65536 && action->total == action->done);
                CHECK_INT(truncate(bench.paths[0], FILE_BYTES / 2), 0);
                action = scrub(&bench, 0, 6, FAST);
                CHECK(action->state == REGION_ACTION_DONE && action->found == 1);
                CHECK(has_range(action, 0, FILE_BYTES / 2 - 65536, FILE_BYTES / 2));
        }
        close_bench(&bench);
}

/* The first of two is bad at its end: that is the middle of the disk, and the second begins right behind. */
static void test_a_bad_end_of_the_first_child_is_the_middle_of_the_disk(void)
{
        const struct region_action *action;
        struct bench bench = {};

        if (open_bench(&bench, "{\"target\":{\"type\":\"linear\",\"children\":[{\"type\":\"linear\","
                               "\"length\":524288,\"child\":" LOOP("%s") "}," LOOP("%s") "]}}")) {
                CHECK_INT(truncate(bench.paths[0], 524288 - 2 * BLOCK), 0);
                action = scrub(&bench, 0, 5, FAST);
                CHECK(action->state == REGION_ACTION_DONE && action->done == 524288 + FILE_BYTES);
                CHECK(action->found == 1 && has_range(action, 0, 524288 - 2 * BLOCK, 2 * BLOCK));
        }
        close_bench(&bench);
}

/* Of a child that is bad at its end each chunk is a range of the disk. */
static void test_stripe(void)
{
        const struct region_action *action;
        struct bench bench = {};

        if (open_bench(&bench, "{\"target\":{\"type\":\"stripe\",\"chunk\":4096,\"children\":[" LOOP(
                                       "%s") "," LOOP("%s") "]}}")) {
                CHECK_INT(truncate(bench.paths[1], FILE_BYTES - 3 * CHUNK), 0);
                action = scrub(&bench, 0, 5, FAST);
                CHECK(action->state == REGION_ACTION_DONE && action->done == 2 * FILE_BYTES);
                CHECK(action->found == 3 && action->found_bytes == 3 * CHUNK);
                for (unsigned i = 0; i < 3; i++)
                        CHECK(has_range(action, i, 2 * FILE_BYTES - (5 - 2 * i) * CHUNK, CHUNK));
        }
        close_bench(&bench);
}

/* Rules are for requests. */
static void test_fault(void)
{
        const struct region_action *action;
        struct bench bench = {};

        if (open_bench(&bench, "{\"target\":{\"type\":\"fault\",\"rules\":[{\"action\":\"error\",\"op\":"
                               "\"read\"}],\"child\":" LOOP("%s") "}}")) {
                CHECK_INT(truncate(bench.paths[0], FILE_BYTES - BLOCK), 0);
                action = scrub(&bench, 1, 5, FAST);
                CHECK(action->state == REGION_ACTION_DONE && action->done == FILE_BYTES);
                CHECK(action->found == 1 && has_range(action, 0, FILE_BYTES - BLOCK, BLOCK));
        }
        close_bench(&bench);
}

/* Requests of the disk are answered meanwhile; the next action is another. */
static void test_cancelled(void)
{
        const struct scrub_arguments arguments = {.rate = 65536};
        struct action_order order = {.id = 5, .worker = 1};
        struct region_action *action;
        struct bench bench = {};

        if (open_bench(&bench, "{\"target\":{\"type\":\"stripe\",\"chunk\":4096,\"children\":[" LOOP(
                                       "%s") "," LOOP("%s") "]}}")) {
                action = &device_region_control(bench.host.shared.region)->action;
                memcpy(order.arguments, &arguments, sizeof(arguments));
                CHECK_INT(action_port_give(bench.host.actions, &order), 0);
                while (action->done == 0)
                        CHECK_INT(loop_turn(&bench.host.loop), 0);
                action->cancel = 5;
                while (action_port_is_busy(bench.host.actions))
                        CHECK_INT(loop_turn(&bench.host.loop), 0);
                CHECK(action->state == REGION_ACTION_CANCELLED && action->done < action->total);
                CHECK_INT(target_host_one(&bench.host, IO_READ, 0, 0, 2 * CHUNK), 2 * CHUNK);
                CHECK_INT(scrub(&bench, 0, 6, FAST)->state, REGION_ACTION_DONE);
        }
        close_bench(&bench);
}

/* A piece is many reads, one after another: it ends after the one that is under way. */
static void test_cancelled_within_a_piece(void)
{
        const struct scrub_arguments arguments = {.rate = FAST};
        struct action_order order = {.id = 5, .worker = 1};
        struct region_action *action;
        struct bench bench = {};
        unsigned reads;

        if (open_bench(&bench, "{\"target\":{\"type\":\"stripe\",\"chunk\":4096,\"children\":[" LOOP(
                                       "%s") "," LOOP("%s") "]}}")) {
                action = &device_region_control(bench.host.shared.region)->action;
                memcpy(order.arguments, &arguments, sizeof(arguments));
                CHECK_INT(action_port_give(bench.host.actions, &order), 0);
                while (!queue_action_reads(&bench.host.action))
                        CHECK_INT(loop_turn(&bench.host.loop), 0);
                reads = bench.host.action.reads;
                action->cancel = 5;
                while (action_port_is_busy(bench.host.actions))
                        CHECK_INT(loop_turn(&bench.host.loop), 0);
                CHECK(action->state == REGION_ACTION_CANCELLED && action->done == 0);
                CHECK_INT(bench.host.action.reads, reads + 1); /* the end of that one */
        }
        close_bench(&bench);
}

/* The other child can be read, and yet the disk is not read on for ever. How far it is is seen in between. */
static void test_a_dead_child(void)
{
        const struct scrub_arguments arguments = {.rate = FAST};
        struct action_order order = {.id = 5, .worker = 1};
        const struct region_action *action;
        struct bench bench = {};
        bool is_within_a_piece = false;

        if (open_bench_of(&bench,
                    "{\"target\":{\"type\":\"stripe\",\"chunk\":1048576,\"children\":[" LOOP("%s") "," LOOP(
                            "%s") "]}}",
                    (off_t)SCRUB_FAILED_MAX + (16 << 20))) {
                action = &device_region_control(bench.host.shared.region)->action;
                CHECK_INT(truncate(bench.paths[1], 0), 0);
                memcpy(order.arguments, &arguments, sizeof(arguments));
                CHECK_INT(action_port_give(bench.host.actions, &order), 0);
                while (action_port_is_busy(bench.host.actions)) {
                        CHECK_INT(loop_turn(&bench.host.loop), 0);
                        is_within_a_piece |= action->done % TARGET_ACTION_MEMORY != 0;
                }
                CHECK(is_within_a_piece);
                CHECK(action->state == REGION_ACTION_FAILED && action->error == EIO);
                CHECK_INT(action->found_bytes, SCRUB_FAILED_MAX);
                CHECK_INT(action->done, 2 * (uint64_t)SCRUB_FAILED_MAX + (1 << 20));
        }
        close_bench(&bench);
}

/* Nothing is reserved for what the disk cannot do. */
static void test_a_disk_without_scrub_reserves_nothing(void)
{
        struct bench bench = {};

        if (open_bench(&bench,
                    "{\"size\":1048576,\"target\":{\"type\":\"linear\",\"child\":{\"type\":\"null\"}}}")) {
                CHECK(!bench.host.actions);
                CHECK_INT(queue_action_stacks(&bench.host.disk.device, 0), 0);
        }
        close_bench(&bench);
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        test_a_part();
        test_a_bad_end_of_the_first_child_is_the_middle_of_the_disk();
        test_stripe();
        test_fault();
        test_cancelled();
        test_cancelled_within_a_piece();
        test_a_dead_child();
        test_a_disk_without_scrub_reserves_nothing();
        return check_report();
}
