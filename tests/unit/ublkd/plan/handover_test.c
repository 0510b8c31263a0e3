/* SPDX-License-Identifier: MIT */
/* A removal while the disk goes to another worker, or its worker to another ublkd: how long it waits, and for what. */
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/plan/attempt.h"

#define SECONDS UINT64_C(1000000)

static const struct plan_wish plain = {
        .enabled = true, .kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING, .now = 1000};

static void see(struct attempt *attempt, enum plan_kernel kernel, enum plan_worker worker, uint64_t now)
{
        struct plan_facts facts = {.want = WANT_PRESENT, .kernel = kernel, .worker = worker};

        (void)attempt_observe(attempt, &facts, now);
}

/* Only a disk that is served can be removed without taking it from an opener. */
static void test_a_removal_waits_for_the_end_of_a_handover(void)
{
        static const struct {
                enum plan_kernel kernel;
                enum plan_worker worker;
                bool outdated, waits;
        } rows[] = {
                {KERNEL_LIVE,   PLAN_WORKER_SERVING,  false, false},
                {KERNEL_LIVE,   PLAN_WORKER_SERVING,  true,  true },
                {KERNEL_LIVE,   PLAN_WORKER_LEAVING,  true,  true },
                {KERNEL_LIVE,   PLAN_WORKER_STARTING, false, true }, /* adopted */
                {KERNEL_DOWN,   PLAN_WORKER_NONE,     false, true },
                {KERNEL_DOWN,   PLAN_WORKER_READY,    false, true },
                {KERNEL_LIVE,   PLAN_WORKER_READY,    false, true },
                {KERNEL_ADDED,  PLAN_WORKER_LEAVING,  true,  false},
                {KERNEL_ABSENT, PLAN_WORKER_NONE,     false, false},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct plan_wish wish = plain;

                wish.deleting = true;
                wish.kernel = rows[i].kernel;
                wish.worker = rows[i].worker;
                wish.worker_is_outdated = rows[i].outdated;
                CHECK_INT(plan_want(&wish), WANT_ABSENT);
                wish.handover_until = wish.now + 1;
                CHECK_INT(plan_want(&wish) != WANT_ABSENT, rows[i].waits);
                CHECK(plan_want_until(&wish) == (rows[i].waits ? wish.now + 1 : UINT64_MAX));
                wish.forced = true;
                CHECK_INT(plan_want(&wish), WANT_ABSENT);
                wish.forced = false;
                wish.kernel_is_old = true;
                CHECK_INT(plan_want(&wish), WANT_ABSENT);
                wish.kernel_is_old = false;
                wish.worker_is_old = true;
                CHECK_INT(plan_want(&wish), WANT_ABSENT);
                wish.worker_is_old = false;
                wish.now++;
                CHECK_INT(plan_want(&wish), WANT_ABSENT);
        }
}

/* No worker starts before a client asks for it. */
static void test_a_removal_does_not_wait_for_a_held_disk(void)
{
        struct plan_wish wish = plain;

        wish.deleting = wish.manual = wish.held = true;
        wish.handover_until = wish.now + 1;
        wish.worker = PLAN_WORKER_LEAVING;
        CHECK(plan_want(&wish) != WANT_ABSENT);
        wish.worker = PLAN_WORKER_NONE;
        wish.kernel = KERNEL_DOWN;
        CHECK_INT(plan_want(&wish), WANT_ABSENT);
        wish.recover_requested = true;
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
}

static void test_a_handover_ends_when_another_worker_serves(void)
{
        struct plan_facts renewed = {
                .want = WANT_RENEWED, .kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING};
        struct attempt attempt = {};
        uint64_t now = 1;

        CHECK_INT(attempt_handover_until(&attempt), 0);
        attempt_handover(&attempt, now);
        (void)attempt_observe(&attempt, &renewed, now);
        attempt_handover(&attempt, now += SECONDS); /* asked again */
        CHECK_INT(attempt_handover_until(&attempt), now + 60 * SECONDS);
        see(&attempt, KERNEL_LIVE, PLAN_WORKER_LEAVING, now);
        attempt_worker_died(&attempt, now);
        see(&attempt, KERNEL_DOWN, PLAN_WORKER_NONE, now);
        see(&attempt, KERNEL_DOWN, PLAN_WORKER_READY, now);
        see(&attempt, KERNEL_LIVE, PLAN_WORKER_READY, now);
        CHECK_INT(attempt_handover_until(&attempt), now + 60 * SECONDS);
        see(&attempt, KERNEL_LIVE, PLAN_WORKER_SERVING, now);
        CHECK_INT(attempt_handover_until(&attempt), 0);
}

static void test_a_handover_ends_with_the_next_worker_or_the_disk(void)
{
        struct attempt attempt = {};

        attempt_worker_died(&attempt, 1);
        attempt_handover(&attempt, 1);
        attempt_worker_died(&attempt, 1);
        CHECK(attempt_handover_until(&attempt) > 0);
        attempt_worker_died(&attempt, 1);
        CHECK_INT(attempt_handover_until(&attempt), 0);
        attempt_handover(&attempt, 1);
        attempt_worker_died(&attempt, 1);
        CHECK(attempt_handover_until(&attempt) > 0);
        see(&attempt, KERNEL_ADDED, PLAN_WORKER_NONE, 1);
        CHECK_INT(attempt_handover_until(&attempt), 0);
}

/* Before, the death of the second one ended the handover, and a removal took the disk from its openers. */
static void test_a_second_restart_begins_a_handover_of_its_own(void)
{
        struct plan_facts renewed = {
                .want = WANT_RENEWED, .kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING};
        struct attempt attempt = {};
        uint64_t now = 1;

        for (int i = 0; i < 2; i++) {
                now += 10 * SECONDS;
                CHECK_INT(attempt_observe(&attempt, &renewed, now), TROUBLE_NONE);
                attempt_handover(&attempt, now);
                attempt_done(&attempt, ACTION_RETIRE_WORKER, 0, now);
                see(&attempt, KERNEL_LIVE, PLAN_WORKER_LEAVING, now);
                attempt_worker_died(&attempt, now);
                see(&attempt, KERNEL_DOWN, PLAN_WORKER_NONE, now);
                CHECK(attempt_handover_until(&attempt) == now + 60 * SECONDS);
        }
        attempt_worker_died(&attempt, now);
        CHECK_INT(attempt_handover_until(&attempt), 0);
}

/* Each try begins the handover again. */
static void test_a_worker_that_stays_does_not_put_the_end_off_for_ever(void)
{
        struct plan_facts renewed = {
                .want = WANT_RENEWED, .kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING};
        struct attempt attempt = {};
        uint64_t now = 1, until = now + 30 * SECONDS;
        int tries = 0;

        while (attempt_observe(&attempt, &renewed, now) == TROUBLE_NONE && tries++ < 1000) {
                attempt_handover(&attempt, now);
                attempt_done(&attempt, ACTION_RETIRE_WORKER, 0, now);
                now = attempt_due(&attempt, ACTION_RETIRE_WORKER, now);
        }
        CHECK(tries > 1 && now >= until && now < until + 10 * SECONDS);
        renewed.trouble = TROUBLE_STUCK;
        CHECK_INT(plan(&renewed), ACTION_STOP_WORKER);
}

int main(void)
{
        test_a_removal_waits_for_the_end_of_a_handover();
        test_a_removal_does_not_wait_for_a_held_disk();
        test_a_handover_ends_when_another_worker_serves();
        test_a_handover_ends_with_the_next_worker_or_the_disk();
        test_a_second_restart_begins_a_handover_of_its_own();
        test_a_worker_that_stays_does_not_put_the_end_off_for_ever();
        return check_report();
}
