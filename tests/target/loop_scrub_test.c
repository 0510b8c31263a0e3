/* SPDX-License-Identifier: MIT */
/* The action "scrub" of loop, on plain files: what it reads, what it reports, and when it ends. */
#include "targets/scrub/scrub.h"
#include "targets/scrub/scrub_desc.h"
#include "targets/worker/io/await.h"
#include "tests/target/scratch.h"
#include "tests/target/target_host.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"
#include "ublkd/base/clock.h"
#include "ublkd/proto/region_action.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 1 << 20, BLOCK = 4096, FAST = 1 << 30 };

static struct scratch scratch;
static unsigned refusals; /* how many of the next reads the kernel has no room for */
static bool breaks;       /* a block that is read alone fails as with a driver that has gone */

int __real_await_operation(struct io_loop *loop, struct io_uring_sqe *sqe);
int __wrap_await_operation(struct io_loop *loop, struct io_uring_sqe *sqe);

int __wrap_await_operation(struct io_loop *loop, struct io_uring_sqe *sqe)
{
        int error = 0, r;

        if (sqe->opcode == IORING_OP_READ && sqe->len >= BLOCK) {
                if (refusals > 0)
                        error = --refusals % 2 ? -EAGAIN : -EINTR;
                else if (breaks && sqe->len == BLOCK && sqe->off == SIZE / 2 + BLOCK)
                        error = -ENODEV;
        }
        r = __real_await_operation(loop, sqe); /* the ring takes no operation that does nothing */
        return r < 0 || error == 0 ? r : error;
}

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
        const struct scrub_arguments arguments = {.rate = rate};

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
        CHECK_INT(truncate(path, 3 * (off_t)SCRUB_FAILED_MAX), 0);
        snprintf(spec, sizeof(spec), "{\"target\":{\"type\":\"loop\",\"path\":\"%s\"}}", path);
        if (CHECK_INT(target_host_open(&host, spec, &problems), 0)) {
                CHECK_INT(truncate(path, 0), 0);
                action = scrub(&host, 5, UINT64_C(1) << 40);
                CHECK_INT(action->state, REGION_ACTION_FAILED);
                CHECK_INT(action->error, EIO);
                CHECK_INT(action->found_bytes, SCRUB_FAILED_MAX);
                CHECK_INT(action->done, SCRUB_FAILED_MAX); /* with what it has found: nothing was read */
        }
        target_host_close(&host);
}

/* What it has read before it gives up is counted to the block. */
static void test_a_store_that_breaks(void)
{
        const struct region_action *action;
        struct target_host host;
        char path[512];

        if (open_file(&host, "breaks", path)) {
                CHECK_INT(truncate(path, SIZE / 2 + BLOCK), 0);
                breaks = true;
                action = scrub(&host, 5, FAST);
                CHECK(action->state == REGION_ACTION_FAILED && action->error == ENODEV);
                CHECK(action->found == 0 && action->total == SIZE);
                CHECK_INT(action->done, SIZE / 2 + BLOCK);
                breaks = false;
        }
        target_host_close(&host);
}

/* ---- the kernel has no room ---- */

static void test_no_room_for_a_moment(void)
{
        const struct region_action *action;
        struct target_host host;
        char path[512];

        if (open_file(&host, "moment", path)) {
                refusals = 3;
                action = scrub(&host, 5, FAST);
                CHECK_INT(action->state, REGION_ACTION_DONE);
                CHECK(action->done == SIZE && action->found == 0 && refusals == 0);
        }
        target_host_close(&host);
}

/* That says nothing of the blocks. */
static void test_no_room_for_seconds(void)
{
        const struct region_action *action;
        struct target_host host;
        char path[512];

        if (open_file(&host, "seconds", path)) {
                refusals = UINT_MAX;
                action = scrub(&host, 5, FAST);
                CHECK_INT(action->state, REGION_ACTION_FAILED);
                CHECK_INT(action->error, EAGAIN);
                CHECK(action->found == 0 && action->done == 0);
                refusals = 0;
        }
        target_host_close(&host);
}

/* It ends within one of the pauses between two tries. */
static void test_cancelled_while_there_is_no_room(void)
{
        const struct scrub_arguments arguments = {.rate = FAST};
        struct action_order order = {.id = 5, .worker = 1};
        struct region_action *action;
        struct target_host host;
        unsigned tries;
        char path[512];

        if (open_file(&host, "cancelled-without-room", path)) {
                action = &device_region_control(host.shared.region)->action;
                memcpy(order.arguments, &arguments, sizeof(arguments));
                refusals = UINT_MAX;
                CHECK_INT(action_port_give(host.actions, &order), 0);
                while (UINT_MAX - refusals < 2)
                        CHECK_INT(loop_turn(&host.loop), 0);
                tries = refusals;
                action->cancel = 5;
                while (action_port_is_busy(host.actions))
                        CHECK_INT(loop_turn(&host.loop), 0);
                CHECK_INT(action->state, REGION_ACTION_CANCELLED);
                CHECK_INT(refusals, tries);
                refusals = 0;
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
static void test_a_closing_queue_waits_for_no_share(void)
{
        struct action_order order = {.id = 5, .worker = 1};
        const struct region_control *control;
        const struct scrub_arguments arguments = {.rate = 65536};
        struct target_host host;
        void *region;
        char path[512];

        if (open_file(&host, "left", path)) {
                region = host.shared.region;
                control = device_region_control(region);
                memcpy(order.arguments, &arguments, sizeof(arguments));
                CHECK_INT(action_port_give(host.actions, &order), 0);
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
        test_a_store_that_breaks();
        test_no_room_for_a_moment();
        test_no_room_for_seconds();
        test_cancelled_while_there_is_no_room();
        test_its_own_rate();
        test_limits();
        test_cancelled();
        test_a_closing_queue_waits_for_no_share();
        scratch_remove(&scratch);
        return check_report();
}
