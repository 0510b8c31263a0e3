/* SPDX-License-Identifier: MIT */
/* own_time: it stands still while the thread waits for a CPU, and not while it waits for something else. */
#include "api/http/own_time.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAG_USEC = 50 * 1000, PATIENCE_USEC = 60 * 1000 * 1000, BLOCKED_MSEC = 50, SECOND = 1000 * 1000 };

/* The thread and its children run on one CPU, and the child only computes. */
static pid_t compete(void)
{
        cpu_set_t one;
        pid_t child;

        CPU_ZERO(&one);
        CPU_SET((size_t)sched_getcpu(), &one);
        CHECK_INT(sched_setaffinity(0, sizeof(one), &one), 0);
        child = fork();
        if (child == 0)
                for (;;)
                        ;
        return child;
}

static void test_without_a_cpu_it_stands_still(int clock)
{
        uint64_t began = monotonic_now(), own = own_time_now(clock).own, now, lag;
        pid_t child = compete();

        do {
                now = monotonic_now();
                lag = (now - began) - (own_time_now(clock).own - own);
        } while (lag < LAG_USEC && now - began < PATIENCE_USEC);
        CHECK(lag >= LAG_USEC);
        CHECK_INT(kill(child, SIGKILL), 0);
        CHECK_INT(waitpid(child, NULL, 0), child);
}

static bool counts_what_blocks(int clock)
{
        uint64_t own = own_time_now(clock).own;

        (void)poll(NULL, 0, BLOCKED_MSEC);
        return own_time_now(clock).own >= own + BLOCKED_MSEC * 1000 - 1000;
}

/* Once: a wait for a CPU between the two reads of the first moment takes that much from it. */
static void test_what_blocks_counts(int clock)
{
        bool counts = false;

        for (uint64_t began = monotonic_now(); !counts && monotonic_now() - began < PATIENCE_USEC;)
                counts = counts_what_blocks(clock);
        CHECK(counts);
}

static void test_no_clock(void)
{
        uint64_t before = monotonic_now(), own = own_time_now(-1).own;

        CHECK(own >= before && own <= monotonic_now());
}

static uint64_t pause_after(int64_t own, int64_t wall)
{
        const struct own_time began = {.own = 1000 * SECOND, .wall = 2000 * SECOND};
        const struct own_time ended = {.own = began.own + (uint64_t)own, .wall = began.wall + (uint64_t)wall};

        return own_time_pause(&began, &ended);
}

/* Requests have a fifth of the time, or half of it if nothing but waits for a CPU is in there. */
static void test_the_pause_after_a_request(void)
{
        CHECK_INT(pause_after(0, 0), 0);
        CHECK_INT(pause_after(1000, 1000), 4000);
        CHECK_INT(pause_after(1000, 101000), 104000);
        CHECK_INT(pause_after(2 * SECOND, 2 * SECOND), 8 * SECOND); /* a slow disk */
        CHECK_INT(pause_after(60 * SECOND, 60 * SECOND), 10 * SECOND);
}

/* The thread waited for a CPU between the two reads of the first moment. */
static void test_own_time_that_goes_back(void)
{
        CHECK_INT(pause_after(-5000, 1000), 1000);
        CHECK_INT(pause_after(-5000, -1), 0);
}

int main(void)
{
        _cleanup_close_ int clock = own_time_open();

        test_no_clock();
        test_the_pause_after_a_request();
        test_own_time_that_goes_back();
        if (clock < 0)
                return CHECK_SKIP;
        test_what_blocks_counts(clock);
        test_without_a_cpu_it_stands_still(clock);
        return check_report();
}
