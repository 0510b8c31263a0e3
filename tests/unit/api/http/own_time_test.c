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

enum { LAG_USEC = 50 * 1000, PATIENCE_USEC = 60 * 1000 * 1000, BLOCKED_MSEC = 50 };

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
        uint64_t began = monotonic_now(), own = own_time_now(clock), now, lag;
        pid_t child = compete();

        do {
                now = monotonic_now();
                lag = (now - began) - (own_time_now(clock) - own);
        } while (lag < LAG_USEC && now - began < PATIENCE_USEC);
        CHECK(lag >= LAG_USEC);
        CHECK_INT(kill(child, SIGKILL), 0);
        CHECK_INT(waitpid(child, NULL, 0), child);
}

static void test_what_blocks_counts(int clock)
{
        uint64_t own = own_time_now(clock);

        (void)poll(NULL, 0, BLOCKED_MSEC);
        CHECK(own_time_now(clock) - own >= BLOCKED_MSEC * 1000 - 1000);
}

static void test_no_clock(void)
{
        uint64_t before = monotonic_now(), own = own_time_now(-1);

        CHECK(own >= before && own <= monotonic_now());
}

int main(void)
{
        _cleanup_close_ int clock = own_time_open();

        test_no_clock();
        if (clock < 0)
                return CHECK_SKIP;
        test_what_blocks_counts(clock);
        test_without_a_cpu_it_stands_still(clock);
        return check_report();
}
