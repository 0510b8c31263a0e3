/* SPDX-License-Identifier: MIT */
/* A look in a process of its own: what it finds comes back, and it cannot hold its caller up. */
#include "targets/loop/look_apart.h"
#include "ublkd/base/clock.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

enum { LONG_MSEC = 60 * 1000, SHORT_MSEC = 100 };

static int find_two(const void *data, struct problem_list *sharing)
{
        (void)problem_add(
                sharing, EBUSY, "/target/path", "BackingInUse", "%s is in use.", (const char *)data);
        return problem_add(sharing, 0, "", "BackingShareUnknown", "Not known.");
}

static void test_problems_of_the_look_are_returned(void)
{
        _cleanup_problems_ struct problem_list found = {};

        CHECK_INT(look_apart(find_two, "loop0", LONG_MSEC, &found), 0);
        if (!CHECK_INT(found.count, 2))
                return;
        CHECK_INT(found.items[0].error, EBUSY);
        CHECK_STR(found.items[0].pointer, "/target/path");
        CHECK_STR(found.items[0].reason, "BackingInUse");
        CHECK_STR(found.items[0].detail, "loop0 is in use.");
        CHECK_INT(found.items[1].error, 0);
        CHECK_STR(found.items[1].pointer, "");
        CHECK_STR(found.items[1].detail, "Not known.");
}

static int find_none(const void *data _unused_, struct problem_list *sharing _unused_)
{
        return 0;
}

static int find_many(const void *data _unused_, struct problem_list *sharing)
{
        for (int i = 0; i < PROBLEM_LIST_MAX; i++)
                (void)problem_add(sharing, i, "/target/path", "BackingInUse", "%03000d", i);
        return 0;
}

static void test_none_and_many(void)
{
        _cleanup_problems_ struct problem_list found = {};

        CHECK_INT(look_apart(find_none, NULL, LONG_MSEC, &found), 0);
        CHECK_INT(found.count, 0);
        CHECK_INT(look_apart(find_many, NULL, LONG_MSEC, &found), 0); /* more than a pipe holds */
        CHECK_INT(found.count, PROBLEM_LIST_MAX);
}

static int hang(const void *data _unused_, struct problem_list *sharing)
{
        int r = find_two("loop0", sharing);

        while (r >= 0)
                pause();
        return r;
}

static void test_a_look_that_hangs_times_out(void)
{
        _cleanup_problems_ struct problem_list found = {};
        int64_t began = clock_msec(CLOCK_MONOTONIC);

        CHECK_INT(look_apart(hang, NULL, SHORT_MSEC, &found), -ETIMEDOUT);
        CHECK(clock_msec(CLOCK_MONOTONIC) - began < LONG_MSEC);
        CHECK_INT(found.count, 0);
}

static int die(const void *data _unused_, struct problem_list *sharing _unused_)
{
        return raise(SIGKILL);
}

static int fail(const void *data _unused_, struct problem_list *sharing _unused_)
{
        return -ENOMEM;
}

static void test_a_look_that_dies_or_fails_returns_epipe(void)
{
        _cleanup_problems_ struct problem_list found = {};

        CHECK_INT(look_apart(die, NULL, LONG_MSEC, &found), -EPIPE);
        CHECK_INT(look_apart(fail, NULL, LONG_MSEC, &found), -EPIPE);
        CHECK_INT(found.count, 0);
}

static int see(const void *data, struct problem_list *sharing)
{
        if (fcntl(*(const int *)data, F_GETFD) < 0)
                return 0;
        return problem_add(sharing, 0, "", "Open", "It is open.");
}

/* The lock on a backing store would outlive its worker. */
static void test_it_has_no_descriptor(void)
{
        _cleanup_problems_ struct problem_list found = {};
        int low = open("/dev/null", O_RDONLY | O_CLOEXEC), high = fcntl(low, F_DUPFD_CLOEXEC, 100);

        CHECK_INT(look_apart(see, &high, LONG_MSEC, &found), 0);
        CHECK_INT(found.count, 0);
        close(high);
        close(low);
}

int main(void)
{
        test_problems_of_the_look_are_returned();
        test_none_and_many();
        test_a_look_that_hangs_times_out();
        test_a_look_that_dies_or_fails_returns_epipe();
        test_it_has_no_descriptor();
        return check_report();
}
