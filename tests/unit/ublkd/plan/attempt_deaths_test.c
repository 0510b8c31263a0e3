/* SPDX-License-Identifier: MIT */
/* Workers that die one after the other: which successor starts at once, and which waits. */
#include "tests/unit/check.h"
#include "ublkd/plan/attempt.h"

#define MS UINT64_C(1000)
#define SECONDS UINT64_C(1000000)

static enum plan_trouble see(
        struct attempt *attempt, enum plan_kernel kernel, enum plan_worker worker, uint64_t now)
{
        struct plan_facts facts = {.want = WANT_PRESENT, .kernel = kernel, .worker = worker};

        return attempt_observe(attempt, &facts, now);
}

static void test_deaths_back_off_until_one_served_long(void)
{
        struct attempt attempt = {};
        uint64_t now = 1;

        for (unsigned i = 0; i < 4; i++) {
                see(&attempt, KERNEL_LIVE, PLAN_WORKER_SERVING, now);
                now += 900 * MS;
                attempt_worker_died(&attempt, now);
                see(&attempt, KERNEL_DOWN, PLAN_WORKER_NONE, now);
        }
        CHECK_INT(attempt_due(&attempt, ACTION_SPAWN, now), now + 400 * MS);
        CHECK(attempt_due(&attempt, ACTION_STOP_DEV, now) <= now); /* deleting it does not wait for that */
        attempt_reset(&attempt);
        CHECK(attempt_due(&attempt, ACTION_SPAWN, now) <= now);

        attempt.deaths = 10;
        see(&attempt, KERNEL_LIVE, PLAN_WORKER_SERVING, now);
        now += 1 * SECONDS;
        see(&attempt, KERNEL_LIVE, PLAN_WORKER_LEAVING, now);
        attempt_worker_died(&attempt, now);
        see(&attempt, KERNEL_DOWN, PLAN_WORKER_NONE, now);
        CHECK_INT(attempt_due(&attempt, ACTION_SPAWN, now), now);
}

/* Serve for `time`, and exit. Return the back-off. */
static uint64_t serve_and_exit(struct attempt *attempt, uint64_t *now, uint64_t time)
{
        see(attempt, KERNEL_LIVE, PLAN_WORKER_SERVING, *now);
        *now += time;
        attempt_worker_died(attempt, *now);
        see(attempt, KERNEL_DOWN, PLAN_WORKER_NONE, *now);
        return attempt_due(attempt, ACTION_SPAWN, *now) - *now;
}

/* Before, a worker that was taken over could exit each second for ever, and its successor started at once. */
static void test_a_worker_that_serves_shortly_again_and_again_backs_off(void)
{
        struct attempt attempt = {};
        uint64_t now = 1, start, hour = 3600 * SECONDS;
        unsigned deaths = 0;

        for (unsigned i = 0; i < 60; i++) /* as a storm of kills may do */
                CHECK_INT(serve_and_exit(&attempt, &now, 1200 * MS), 0);
        start = now;
        for (; now < start + 24 * hour; deaths++)
                now += serve_and_exit(&attempt, &now, 1200 * MS);
        CHECK(deaths < 24 * 60 * 3); /* it was one a second */
        CHECK(deaths > 24 * 60);     /* and no worker waits for longer than before */
        attempt_reset(&attempt);
        CHECK_INT(attempt_due(&attempt, ACTION_SPAWN, now), 0); /* the client asks to try at once */
        (void)serve_and_exit(&attempt, &now, hour);
        for (unsigned i = 0; i < 50; i++) /* it has served for that */
                CHECK_INT(serve_and_exit(&attempt, &now, 1200 * MS), 0);
}

static void test_deaths_after_a_minute_never_back_off(void)
{
        struct attempt attempt = {};
        uint64_t now = 1;

        for (unsigned i = 0; i < 10000; i++)
                CHECK_INT(serve_and_exit(&attempt, &now, 60 * SECONDS), 0);
}

/* Each change of what is wanted is another situation; the service is one. */
static void test_service_is_counted_once(void)
{
        const struct plan_facts grows = {
                .want = WANT_GROWN, .kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING};
        struct attempt attempt = {.deaths = 5};
        uint64_t now = 1;

        for (unsigned i = 0; i < 4; i++) { /* 900 ms in all */
                see(&attempt, KERNEL_LIVE, PLAN_WORKER_SERVING, now);
                (void)attempt_observe(&attempt, &grows, now += 125 * MS);
                now += 100 * MS;
        }
        attempt_worker_died(&attempt, now);
        CHECK_INT(attempt.deaths, 6);
        for (unsigned i = 0; i < 8; i++) { /* 1,800 ms in all */
                see(&attempt, KERNEL_LIVE, PLAN_WORKER_SERVING, now);
                (void)attempt_observe(&attempt, &grows, now += 125 * MS);
                now += 100 * MS;
        }
        attempt_worker_died(&attempt, now);
        CHECK_INT(attempt.deaths, 0);
        now += SECONDS; /* the kernel did not answer meanwhile */
        see(&attempt, KERNEL_DOWN, PLAN_WORKER_NONE, now);
        attempt_worker_died(&attempt, now);
        CHECK_INT(attempt.deaths, 1);
}

/* Serve for `time`, and be killed for what it sent. Return the back-off. */
static uint64_t serve_and_break(struct attempt *attempt, uint64_t *now, uint64_t time)
{
        see(attempt, KERNEL_LIVE, PLAN_WORKER_SERVING, *now);
        *now += time;
        attempt_worker_broke(attempt, *now);
        see(attempt, KERNEL_DOWN, PLAN_WORKER_NONE, *now);
        return attempt_due(attempt, ACTION_SPAWN, *now) - *now;
}

/* A worker that serves for a while, is killed for what it sends, and so on, does not make a tight loop. */
static void test_broken_protocols_back_off_although_the_workers_served_long(void)
{
        struct attempt attempt = {};
        uint64_t now = 1;

        CHECK_INT(serve_and_break(&attempt, &now, 5 * SECONDS), 100 * MS);
        CHECK_INT(serve_and_break(&attempt, &now, 5 * SECONDS), 200 * MS);
        CHECK_INT(serve_and_break(&attempt, &now, 60 * SECONDS), 400 * MS);
        for (unsigned i = 0; i < 10; i++)
                (void)serve_and_break(&attempt, &now, 5 * SECONDS);
        CHECK_INT(serve_and_break(&attempt, &now, 5 * SECONDS), 30 * SECONDS);
        CHECK_INT(serve_and_break(&attempt, &now, 3600 * SECONDS), 100 * MS); /* trusted again */
        (void)serve_and_break(&attempt, &now, 5 * SECONDS);
        attempt_reset(&attempt);
        CHECK_INT(attempt_due(&attempt, ACTION_SPAWN, now), 0); /* the client asks to try at once */
        CHECK_INT(serve_and_break(&attempt, &now, 5 * SECONDS), 100 * MS);
}

int main(void)
{
        test_deaths_back_off_until_one_served_long();
        test_a_worker_that_serves_shortly_again_and_again_backs_off();
        test_deaths_after_a_minute_never_back_off();
        test_service_is_counted_once();
        test_broken_protocols_back_off_although_the_workers_served_long();
        return check_report();
}
