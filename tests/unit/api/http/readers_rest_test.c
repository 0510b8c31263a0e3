/* SPDX-License-Identifier: MIT */
/* readers_rest: all wait for a piece of work in a turn, and an account for the heads that it sends. */
#include "api/http/readers_rest.h"

#include "tests/unit/check.h"
#include "ublkd/base/clock.h"

enum { MSEC = 1000, SECOND = 1000 * 1000, ALICE = 1000, BOB = 1001 };

static const uint64_t now = 100 * (uint64_t)SECOND;

static void test_no_pause_at_first(void)
{
        struct readers_rest rest = {};

        CHECK_INT(readers_rest_left(&rest, now), 0);
        CHECK_INT(readers_rest_left_of(&rest, ALICE, now), 0);
        CHECK_INT(readers_rest_left_of(&rest, 0, now), 0); /* as a place that is not in use */
}

static void test_short_pauses_add_up(void)
{
        struct readers_rest rest = {};

        readers_rest_add(&rest, MSEC, now);
        CHECK_INT(readers_rest_left(&rest, now), 0);
        readers_rest_add(&rest, MSEC, now);
        CHECK_INT(readers_rest_left(&rest, now), 2 * MSEC);
        readers_rest_add(&rest, 5 * MSEC, now + MSEC);
        CHECK_INT(readers_rest_left(&rest, now + MSEC), 6 * MSEC);
        CHECK_INT(readers_rest_left(&rest, now + 7 * MSEC), 0);
        readers_rest_add(&rest, 5 * MSEC, now + SECOND); /* what is over does not count */
        CHECK_INT(readers_rest_left(&rest, now + SECOND), 5 * MSEC);
}

static void test_an_account_waits_alone(void)
{
        struct readers_rest rest = {};

        readers_rest_add_to(&rest, ALICE, 30 * MSEC, now);
        readers_rest_add_to(&rest, BOB, 2 * MSEC, now);
        readers_rest_add_to(&rest, ALICE, 30 * MSEC, now);
        CHECK_INT(readers_rest_left(&rest, now), 0);
        CHECK_INT(readers_rest_left_of(&rest, ALICE, now), 60 * MSEC);
        CHECK_INT(readers_rest_left_of(&rest, BOB, now), 2 * MSEC);
        CHECK_INT(readers_rest_left_of(&rest, BOB + 1, now), 0);
}

static void test_no_pause_is_longer_than_ten_seconds(void)
{
        struct readers_rest rest = {};

        for (unsigned i = 0; i < 3; i++) {
                readers_rest_add(&rest, 9 * (uint64_t)SECOND, now);
                readers_rest_add_to(&rest, ALICE, 9 * (uint64_t)SECOND, now);
        }
        CHECK_INT(readers_rest_left(&rest, now), 10 * SECOND);
        CHECK_INT(readers_rest_left_of(&rest, ALICE, now), 10 * SECOND);
}

/* Of more accounts than there are places, those with the longest pauses wait. */
static void test_very_many_accounts(void)
{
        struct readers_rest rest = {};

        for (uint32_t i = 0; i < READERS_REST_ACCOUNTS; i++)
                readers_rest_add_to(&rest, i, (10 + i) * MSEC, now);
        readers_rest_add_to(&rest, ALICE, 5 * MSEC, now);
        CHECK_INT(readers_rest_left_of(&rest, ALICE, now), 0);
        CHECK_INT(readers_rest_left_of(&rest, 0, now), 10 * MSEC);
        readers_rest_add_to(&rest, BOB, 20 * MSEC, now);
        CHECK_INT(readers_rest_left_of(&rest, BOB, now), 20 * MSEC);
        CHECK_INT(readers_rest_left_of(&rest, 0, now), 0);
        CHECK_INT(readers_rest_left_of(&rest, 1, now), 11 * MSEC);
        readers_rest_add_to(&rest, ALICE, 5 * MSEC, now + SECOND); /* the others are over */
        CHECK_INT(readers_rest_left_of(&rest, ALICE, now + SECOND), 5 * MSEC);
}

/* Four times as long as the work took, also without a clock of the thread. */
static void test_the_pause_follows_from_the_work(void)
{
        struct readers_rest rest;
        uint64_t began, took, pause;
        struct own_time start;

        readers_rest_open(&rest);
        CHECK_INT(readers_rest_left(&rest, monotonic_now()), 0);
        readers_rest_close(&rest);
        CHECK_INT(rest.clock, -1);
        start = readers_rest_begin(&rest);
        began = monotonic_now();
        while (monotonic_now() < began + MSEC)
                ;
        pause = readers_rest_pause(&rest, start);
        took = monotonic_now() - start.wall;
        CHECK(pause >= 4 * MSEC && pause <= 4 * took);
}

int main(void)
{
        test_no_pause_at_first();
        test_short_pauses_add_up();
        test_an_account_waits_alone();
        test_no_pause_is_longer_than_ten_seconds();
        test_very_many_accounts();
        test_the_pause_follows_from_the_work();
        return check_report();
}
