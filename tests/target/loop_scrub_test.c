/* SPDX-License-Identifier: MIT */
/* The action "scrub" of loop, on plain files: what it reads, what it reports, and when it ends. */
#include "targets/loop/loop_options.h"
#include "targets/loop/loop_scrub.h"
#include "tests/target/scratch.h"
#include "tests/target/target_host.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"
#include "ublkd/base/clock.h"
#include "ublkd/proto/region_action.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 1 << 20, BLOCK = 4096, FAST = 1 << 30 };

static struct scratch scratch;

static bool open_file(struct target_host *host, const char *name, char path[static 512])
{
        _cleanup_problems_ struct problem_list problems = {};
        char spec[1024];

        CHECK_INT(scratch_file(&scratch, name, SIZE, path, 512), 0);
        snprintf(spec, sizeof(spec), "{\"target\":{\"type\":\"loop\",\"path\":\"%s\"}}", path);
        return CHECK_INT(target_host_open(host, spec, &problems), 0);
}

static const struct region_action *scrub(struct target_host *host, uint64_t id, uint64_t rate)
{
        const struct loop_scrub_arguments arguments = {.rate = rate};

        CHECK_INT(target_host_act(host, id, 0, &arguments, sizeof(arguments)), 0);
        return &device_region_control(host->shared.region)->action;
}

static void test_good(void)
{
        const struct region_action *action;
        struct target_host host;
        char path[512];

        if (open_file(&host, "good", path)) {
                action = scrub(&host, 5, FAST);
                CHECK_INT(action->id, 5);
                CHECK_INT(action->state, REGION_ACTION_DONE);
                CHECK(action->done == SIZE && action->total == SIZE && action->found == 0);
                action = scrub(&host, 6, FAST);
                CHECK(action->id == 6 && action->state == REGION_ACTION_DONE);
                CHECK_INT(target_host_one(&host, IO_READ, 0, 0, BLOCK), BLOCK);
        }
        target_host_close(&host);
}

/* What lies behind the end of a file that was cut off cannot be read: to the block. */
static void test_unreadable(void)
{
        const struct region_action *action;
        struct target_host host;
        char path[512];

        if (open_file(&host, "short", path)) {
                CHECK_INT(truncate(path, SIZE / 2 + BLOCK), 0);
                action = scrub(&host, 5, FAST);
                CHECK_INT(action->state, REGION_ACTION_DONE);
                CHECK(action->done == SIZE && action->found == 1 && action->range_count == 1);
                CHECK_INT(action->ranges[0].offset, SIZE / 2 + BLOCK);
                CHECK_INT(action->ranges[0].length, SIZE / 2 - BLOCK);
                CHECK_INT(action->found_bytes, SIZE / 2 - BLOCK);
        }
        target_host_close(&host);
}

/* A store that has gone is not asked for each of its blocks. */
static void test_a_store_that_fails(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        const struct region_action *action;
        struct target_host host;
        char path[512], spec[1024];

        CHECK_INT(scratch_file(&scratch, "gone", SIZE, path, sizeof(path)), 0);
        CHECK_INT(truncate(path, 3 * (off_t)LOOP_SCRUB_FAILED_MAX), 0);
        snprintf(spec, sizeof(spec), "{\"target\":{\"type\":\"loop\",\"path\":\"%s\"}}", path);
        if (CHECK_INT(target_host_open(&host, spec, &problems), 0)) {
                CHECK_INT(truncate(path, 0), 0);
                action = scrub(&host, 5, UINT64_C(1) << 40);
                CHECK_INT(action->state, REGION_ACTION_FAILED);
                CHECK_INT(action->error, EIO);
                CHECK_INT(action->found_bytes, LOOP_SCRUB_FAILED_MAX);
        }
        target_host_close(&host);
}

/* 1 MiB in pieces of 256 KiB, the last three of which wait. */
static void test_its_own_rate(void)
{
        const struct region_action *action;
        struct target_host host;
        uint64_t begin;
        char path[512];

        if (open_file(&host, "slow", path)) {
                begin = clock_nsec(CLOCK_MONOTONIC);
                action = scrub(&host, 5, 4 * SIZE);
                CHECK_INT(action->state, REGION_ACTION_DONE);
                CHECK(clock_nsec(CLOCK_MONOTONIC) - begin >= UINT64_C(180) * 1000 * 1000);
        }
        target_host_close(&host);
}

/* The limits of the disk hold for it as for its requests. */
static void test_limits(void)
{
        const struct region_limits limits[_REGION_DIRECTION_MAX] = {
                [REGION_READ] = {.per_second = {[REGION_BUCKET_BYTES] = 4 * SIZE},
                                 .burst = {[REGION_BUCKET_BYTES] = SIZE / 4}}
        };
        const struct region_action *action;
        struct target_host host;
        uint64_t begin;
        char path[512];

        if (open_file(&host, "limited", path)) {
                throttle_set(&host.throttle, limits, 2, HOST_DATA_SIZE);
                begin = clock_nsec(CLOCK_MONOTONIC);
                action = scrub(&host, 5, FAST);
                CHECK_INT(action->state, REGION_ACTION_DONE);
                CHECK(clock_nsec(CLOCK_MONOTONIC) - begin >= UINT64_C(180) * 1000 * 1000);
        }
        target_host_close(&host);
}

static void test_cancelled(void)
{
        const struct region_action *action;
        struct target_host host;
        char path[512];

        if (open_file(&host, "cancelled", path)) {
                device_region_control(host.shared.region)->action.cancel = 5;
                action = scrub(&host, 5, FAST);
                CHECK_INT(action->state, REGION_ACTION_CANCELLED);
                CHECK_INT(action->done, 0);
                action = scrub(&host, 6, FAST); /* the next one is another */
                CHECK_INT(action->state, REGION_ACTION_DONE);
        }
        target_host_close(&host);
}

/* A queue that closes does not wait for the time of an action's share. */
static void test_left(void)
{
        struct action_order order = {.id = 5, .worker = 1};
        const struct region_control *control;
        const struct loop_scrub_arguments arguments = {.rate = 65536};
        struct target_host host;
        void *region;
        char path[512];

        if (open_file(&host, "left", path)) {
                region = host.shared.region;
                control = device_region_control(region);
                memcpy(order.arguments, &arguments, sizeof(arguments));
                action_port_give(host.actions, &order);
                while (control->action.done == 0)
                        CHECK_INT(loop_turn(&host.loop), 0);
                host.shared.region = NULL; /* stays, to be looked at */
                target_host_close(&host);
                CHECK_INT(control->action.state, REGION_ACTION_LEFT);
                CHECK(control->action.done < SIZE);
        } else
                target_host_close(&host);
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        if (!CHECK_INT(scratch_make(&scratch, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"), 0))
                return check_report();
        test_good();
        test_unreadable();
        test_a_store_that_fails();
        test_its_own_rate();
        test_limits();
        test_cancelled();
        test_left();
        scratch_remove(&scratch);
        return check_report();
}
