/* SPDX-License-Identifier: MIT */
/* How attempt.c counts, waits, despairs and forgives. */
#include "tests/unit/check.h"
#include "ublkd/plan/attempt.h"

#include <errno.h>

#define MS UINT64_C(1000)
#define SECONDS UINT64_C(1000000)

static enum plan_trouble see(
        struct attempt *attempt, enum plan_kernel kernel, enum plan_worker worker, uint64_t now)
{
        struct plan_facts facts = {.want = WANT_PRESENT, .kernel = kernel, .worker = worker};

        return attempt_observe(attempt, &facts, now);
}

static void test_failures_back_off_and_get_stuck(void)
{
        struct attempt attempt = {};
        uint64_t now = 1;

        CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_READY, now), TROUBLE_NONE);
        CHECK(attempt_due(&attempt, ACTION_END_RECOVERY, now) <= now);
        attempt_done(&attempt, ACTION_END_RECOVERY, -EINTR, now);
        CHECK_INT(attempt_due(&attempt, ACTION_END_RECOVERY, now), now);
        CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_READY, now), TROUBLE_NONE);
        attempt_done(&attempt, ACTION_END_RECOVERY, -EINTR, now);
        CHECK_INT(attempt_due(&attempt, ACTION_END_RECOVERY, now), now + 100 * MS);
        now += 100 * MS;
        CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_READY, now), TROUBLE_NONE);
        attempt_done(&attempt, ACTION_END_RECOVERY, -EIO, now);
        CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_READY, now), TROUBLE_STUCK);
        CHECK_INT(attempt.error, -EIO);
        CHECK_INT(attempt.failed, ACTION_END_RECOVERY);
        /* the way out makes another situation, without a past */
        attempt_done(&attempt, ACTION_STOP_WORKER, 0, now);
        CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_LEAVING, now), TROUBLE_NONE);
        CHECK(attempt_due(&attempt, ACTION_WAIT, now) == now + 10 * SECONDS);
}

static void test_a_way_out_without_effect_is_not_repeated_at_once(void)
{
        struct attempt attempt = {};
        uint64_t now = 1;

        CHECK_INT(see(&attempt, KERNEL_LIVE, PLAN_WORKER_LEAVING, now), TROUBLE_NONE);
        now += 10 * SECONDS;
        CHECK_INT(see(&attempt, KERNEL_LIVE, PLAN_WORKER_LEAVING, now), TROUBLE_STUCK);
        attempt_done(&attempt, ACTION_STOP_WORKER, 0, now);
        CHECK_INT(see(&attempt, KERNEL_LIVE, PLAN_WORKER_LEAVING, now), TROUBLE_NONE);
        CHECK_INT(attempt_due(&attempt, ACTION_WAIT, now), now + 10 * SECONDS);
}

static void test_a_success_without_effect_is_looked_at_ever_slower(void)
{
        struct attempt attempt = {};
        uint64_t now = 1, due;

        for (unsigned i = 0; i < 100; i++) { /* DEL_DEV while an opener holds the disk */
                see(&attempt, KERNEL_ADDED, PLAN_WORKER_NONE, now);
                attempt_done(&attempt, ACTION_DEL_DEV, 0, now);
                due = attempt_due(&attempt, ACTION_DEL_DEV, now);
                CHECK(due >= now + 2 * MS && due <= now + SECONDS);
                now = due;
        }
        CHECK_INT(due - attempt.seen_since > 60 * SECONDS, true);
}

static void test_busy_is_not_a_failure(void)
{
        struct attempt attempt = {};
        uint64_t now = 1;

        for (unsigned i = 0; i < 200; i++) {
                CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_PARAMS, now), TROUBLE_NONE);
                attempt_done(&attempt, ACTION_BEGIN_RECOVERY, -EBUSY, now);
                CHECK(attempt_due(&attempt, ACTION_BEGIN_RECOVERY, now) >= now + MS);
                CHECK(attempt_due(&attempt, ACTION_BEGIN_RECOVERY, now) <= now + 100 * MS);
                now = attempt_due(&attempt, ACTION_BEGIN_RECOVERY, now);
        }
}

static void test_a_failed_search_leaves_the_cause_unknown(void)
{
        struct attempt attempt = {};

        see(&attempt, KERNEL_DOWN, PLAN_WORKER_PARAMS, 1);
        attempt_done(&attempt, ACTION_BEGIN_RECOVERY, -EBUSY, 1);
        CHECK(attempt_waits_for_release(&attempt));
        attempt_blind(&attempt, 2);
        CHECK(!attempt_waits_for_release(&attempt));
        see(&attempt, KERNEL_DOWN, PLAN_WORKER_PARAMS, 3);
        CHECK(attempt_waits_for_release(&attempt));
}

static void test_a_number_is_waited_for(void)
{
        struct attempt attempt = {};
        uint64_t now = 1;

        CHECK_INT(attempt_add_result(-EEXIST, false), -EINPROGRESS);
        CHECK_INT(attempt_add_result(-EEXIST, true), -EEXIST);
        CHECK_INT(attempt_add_result(0, false), 0);
        for (unsigned i = 0; i < ATTEMPT_RELEASES; i++) {
                CHECK_INT(see(&attempt, KERNEL_ABSENT, PLAN_WORKER_PARAMS, now), TROUBLE_NONE);
                attempt_done(&attempt, ACTION_ADD_DEV, -EINPROGRESS, now);
                CHECK(attempt_waits_for_release(&attempt));
                CHECK(attempt_due(&attempt, ACTION_ADD_DEV, now) >= now + MS);
                now = attempt_due(&attempt, ACTION_ADD_DEV, now);
        }
        CHECK(now > SECONDS && now < 3 * SECONDS);
        for (unsigned i = 0; i < 2 * ATTEMPT_TRIES;
                i++) { /* no worker is to blame for it, and so none has to go */
                attempt_done(&attempt, ACTION_ADD_DEV, -EINPROGRESS, now);
                CHECK(!attempt_waits_for_release(&attempt));
                CHECK_INT(see(&attempt, KERNEL_ABSENT, PLAN_WORKER_PARAMS, now), TROUBLE_NONE);
        }
        attempt_done(&attempt, ACTION_ADD_DEV, -EBUSY, now); /* its backing store is another disk's */
        CHECK(!attempt_waits_for_release(&attempt));
}

/* Lets a worker come, be refused and die. */
static void refuse_once(struct attempt *attempt, uint64_t now)
{
        see(attempt, KERNEL_DOWN, PLAN_WORKER_PARAMS, now);
        attempt_done(attempt, ACTION_BEGIN_RECOVERY, -EINVAL, now);
        see(attempt, KERNEL_DOWN, PLAN_WORKER_READY, now);
        attempt_done(attempt, ACTION_END_RECOVERY, -EINVAL, now);
        CHECK_INT(see(attempt, KERNEL_DOWN, PLAN_WORKER_FETCHING, now), TROUBLE_NONE);
        attempt_worker_died(attempt, now);
}

static void test_a_growth_that_was_given_up_is_not_overtaken(void)
{
        const struct plan_facts facts = {
                .want = WANT_GROWN, .kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING};
        struct attempt attempt = {};

        (void)attempt_observe(&attempt, &facts, 1);
        attempt_done(&attempt, ACTION_GROW_DISK, -EINTR, 1);
        CHECK_INT(attempt_due(&attempt, ACTION_GROW_DISK, 1), 1);
        CHECK(!attempt_may_grow(&attempt));
        attempt_done(&attempt, ACTION_GROW_DISK, -ETIMEDOUT, 1);
        attempt_reset(&attempt); /* another size is asked for */
        CHECK(attempt_may_grow(&attempt));
        CHECK_INT(attempt_due(&attempt, ACTION_GROW_DISK, 1), 1 + 60 * SECONDS);
}

/* While a command that hangs keeps others from being sent, the way out comes as if they had hung, too. */
static void test_a_step_that_is_held_up_counts_slowly_and_is_due_once_released(void)
{
        struct attempt attempt = {};
        uint64_t now = 1;

        CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_READY, now), TROUBLE_NONE);
        attempt_done(&attempt, ACTION_END_RECOVERY, -ETIMEDOUT, now);
        for (unsigned i = 1; i < ATTEMPT_TRIES; i++) {
                CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_READY, now), TROUBLE_NONE);
                attempt_done(&attempt, ACTION_END_RECOVERY, -EALREADY, now);
                CHECK_INT(attempt_due(&attempt, ACTION_END_RECOVERY, now), now + 10 * SECONDS);
                now += 10 * SECONDS;
        }
        CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_READY, now), TROUBLE_STUCK);
        CHECK_INT(attempt.error, -ETIMEDOUT); /* that is what hangs */
        attempt_done(&attempt, ACTION_END_RECOVERY, -EALREADY, now);
        attempt_released(&attempt, now + 1);
        CHECK_INT(attempt_due(&attempt, ACTION_END_RECOVERY, now + 1), now + 1);
        attempt_done(&attempt, ACTION_END_RECOVERY, -EIO, now + 1);
        attempt_released(&attempt, now + 2); /* it held nothing up: the back-off stays */
        CHECK(attempt_due(&attempt, ACTION_END_RECOVERY, now + 2) > now + 2);
}

static void test_a_disk_in_use_is_not_a_problem(void)
{
        const struct plan_facts facts = {
                .want = WANT_ABSENT, .kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING};
        struct attempt attempt = {};
        uint64_t now = 1;

        for (unsigned i = 0; i < 100; i++) {
                CHECK_INT(attempt_observe(&attempt, &facts, now), TROUBLE_NONE);
                attempt_done(&attempt, ACTION_STOP_DEV, -EBUSY, now);
                CHECK(attempt_due(&attempt, ACTION_STOP_DEV, now) > now);
                now = attempt_due(&attempt, ACTION_STOP_DEV, now);
        }
        CHECK(now > 60 * SECONDS);
}

static void test_a_recovery_waits_for_a_driver_that_cancels_late(void)
{
        CHECK(attempt_may_begin(false, 0, SECONDS));
        CHECK(!attempt_may_begin(true, 0, SECONDS)); /* the driver has yet to notice the death */
        CHECK(!attempt_may_begin(true, SECONDS, SECONDS + ATTEMPT_SETTLES - 1));
        CHECK(attempt_may_begin(true, SECONDS, SECONDS + ATTEMPT_SETTLES));
}

static void test_three_refused_workers_are_hopeless(void)
{
        struct attempt attempt = {};

        CHECK(attempt_may_go(0) && attempt_may_go(-EINVAL) && !attempt_may_go(-EBUSY));
        refuse_once(&attempt, 1);
        CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_NONE, 2), TROUBLE_NONE);
        refuse_once(&attempt, 3);
        refuse_once(&attempt, 4);
        CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_NONE, 5), TROUBLE_HOPELESS);
        /* it was recovered all the same, and the next death came before ublkd saw it live */
        attempt_done(&attempt, ACTION_END_RECOVERY, 0, 5);
        CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_NONE, 5), TROUBLE_NONE);
        for (unsigned i = 0; i < ATTEMPT_REFUSALS; i++)
                refuse_once(&attempt, 5);
        CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_NONE, 5), TROUBLE_HOPELESS);
        /* the disk was stopped: what was refused does not count for the next one */
        CHECK_INT(see(&attempt, KERNEL_ADDED, PLAN_WORKER_NONE, 6), TROUBLE_NONE);
        CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_NONE, 7), TROUBLE_NONE);
}

/* Counted from when the recovery could begin, not from when its worker came. */
static void test_a_recovery_is_overdue(void)
{
        struct attempt attempt = {};
        uint64_t began = 5 * SECONDS;

        CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_PARAMS, SECONDS), TROUBLE_NONE);
        CHECK(!attempt_is_overdue(&attempt, false, SECONDS + ATTEMPT_OVERDUE)); /* nothing was tried */
        attempt_done(&attempt, ACTION_BEGIN_RECOVERY, -EBUSY, began);
        attempt_done(&attempt, ACTION_BEGIN_RECOVERY, -EBUSY, began + SECONDS);
        CHECK(!attempt_is_overdue(&attempt, false, began + ATTEMPT_OVERDUE - 1));
        CHECK(attempt_is_overdue(&attempt, false, began + ATTEMPT_OVERDUE));
        CHECK(!attempt_is_overdue(&attempt, true, began + ATTEMPT_OVERDUE));
        CHECK(attempt_is_overdue(&attempt, true, began + ATTEMPT_OVERDUE_FULL));
}

static enum plan_trouble look_twice(struct attempt *attempt, uint64_t apart)
{
        attempt_unheld(attempt, 20 * SECONDS);
        CHECK_INT(see(attempt, KERNEL_DOWN, PLAN_WORKER_PARAMS, 20 * SECONDS), TROUBLE_NONE);
        attempt_unheld(attempt, 20 * SECONDS + apart);
        return see(attempt, KERNEL_DOWN, PLAN_WORKER_PARAMS, 20 * SECONDS + apart);
}

static void test_a_death_that_the_driver_never_notices_is_hopeless(void)
{
        struct attempt attempt = {};

        see(&attempt, KERNEL_DOWN, PLAN_WORKER_PARAMS, SECONDS);
        CHECK_INT(look_twice(&attempt, ATTEMPT_LOOKS_APART - 1), TROUBLE_NONE);
        CHECK_INT(look_twice(&attempt, ATTEMPT_LOOKS_APART), TROUBLE_HOPELESS);
        attempt_held(&attempt); /* it has noticed it after all */
        CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_PARAMS, 30 * SECONDS), TROUBLE_NONE);
        CHECK_INT(look_twice(&attempt, ATTEMPT_LOOKS_APART), TROUBLE_HOPELESS);
        CHECK_INT(see(&attempt, KERNEL_ADDED, PLAN_WORKER_PARAMS, 31 * SECONDS), TROUBLE_NONE);
        CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_PARAMS, 32 * SECONDS), TROUBLE_NONE);
}

/* Every queue of that worker had fetched, which the kernel allows no worker whose disk is spoilt. */
static void test_a_worker_that_died_while_the_disk_went_live_was_not_refused(void)
{
        struct attempt attempt = {};

        refuse_once(&attempt, 1);
        refuse_once(&attempt, 2);
        see(&attempt, KERNEL_DOWN, PLAN_WORKER_PARAMS, 3);
        attempt_done(&attempt, ACTION_BEGIN_RECOVERY, -EINVAL, 3);
        see(&attempt, KERNEL_DOWN, PLAN_WORKER_READY, 3);
        attempt_done(&attempt, ACTION_END_RECOVERY, -EINTR, 3);
        attempt_worker_died(&attempt, 3);
        CHECK_INT(see(&attempt, KERNEL_DOWN, PLAN_WORKER_NONE, 4), TROUBLE_NONE);
}

/* The worker was started and died before the reconciler looked: the next one starts as soon as otherwise. */
static void test_a_worker_that_was_never_observed(void)
{
        struct attempt attempt = {};

        see(&attempt, KERNEL_ABSENT, PLAN_WORKER_NONE, 1);
        attempt_done(&attempt, ACTION_SPAWN, 0, 1);
        CHECK(attempt_due(&attempt, ACTION_SPAWN, 1) > 2);
        attempt_worker_died(&attempt, 2);
        see(&attempt, KERNEL_ABSENT, PLAN_WORKER_NONE, 2);
        CHECK_INT(attempt_due(&attempt, ACTION_SPAWN, 2), 2);
}

static void test_a_retiring_worker_may_finish(void)
{
        const struct plan_facts facts = {
                .want = WANT_RENEWED, .kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING};
        struct attempt attempt = {};
        uint64_t now = 1, due;

        CHECK_INT(attempt_observe(&attempt, &facts, now), TROUBLE_NONE);
        for (unsigned i = 0; i < 20; i++) { /* its last request takes its time */
                attempt_done(&attempt, ACTION_RETIRE_WORKER, 0, now);
                due = attempt_due(&attempt, ACTION_RETIRE_WORKER, now);
                CHECK(due > now && due <= now + 1 * SECONDS);
                now = due;
                CHECK_INT(attempt_observe(&attempt, &facts, now), TROUBLE_NONE);
        }
        CHECK_INT(attempt_observe(&attempt, &facts, 1 + 30 * SECONDS), TROUBLE_STUCK);
        attempt_worker_died(&attempt, now); /* as ublkd asked: no back-off */
        CHECK_INT(attempt.deaths, 0);
        attempt_worker_died(&attempt, now);
        CHECK_INT(attempt.deaths, 1);
}

/* One that was killed has less time than one that was asked to leave. */
static void test_a_leaving_worker_may_finish(void)
{
        const struct plan_facts serving = {
                .want = WANT_RENEWED, .kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING};
        const struct plan_facts leaving = {
                .want = WANT_PRESENT, .kernel = KERNEL_LIVE, .worker = PLAN_WORKER_LEAVING};
        struct attempt attempt = {}, of_killed = {};

        CHECK_INT(attempt_observe(&attempt, &serving, 1), TROUBLE_NONE);
        attempt_done(&attempt, ACTION_RETIRE_WORKER, 0, 1);
        CHECK_INT(attempt_observe(&attempt, &leaving, 1), TROUBLE_NONE);
        CHECK_INT(attempt_due(&attempt, ACTION_WAIT, 1), 1 + 30 * SECONDS);
        CHECK_INT(attempt_observe(&attempt, &leaving, 30 * SECONDS), TROUBLE_NONE);
        CHECK_INT(attempt_observe(&attempt, &leaving, 1 + 30 * SECONDS), TROUBLE_STUCK);
        CHECK_INT(attempt_observe(&of_killed, &leaving, 1), TROUBLE_NONE);
        CHECK_INT(attempt_observe(&of_killed, &leaving, 1 + 10 * SECONDS), TROUBLE_STUCK);
}

static void test_a_worker_that_cannot_be_retired_is_soon_stuck(void)
{
        const struct plan_facts facts = {
                .want = WANT_RENEWED, .kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING};
        struct attempt attempt = {};

        for (unsigned i = 0; i < ATTEMPT_TRIES; i++) { /* its queue is full of requests that wait */
                CHECK_INT(attempt_observe(&attempt, &facts, 1), TROUBLE_NONE);
                attempt_done(&attempt, ACTION_RETIRE_WORKER, -EBUSY, 1);
        }
        CHECK_INT(attempt_observe(&attempt, &facts, 1), TROUBLE_STUCK);
}

static void test_waits_have_an_end(void)
{
        static const struct {
                enum plan_kernel kernel;
                enum plan_worker worker;
                uint64_t limit;
        } waits[] = {
                {KERNEL_ABSENT, PLAN_WORKER_STARTING, 30 * SECONDS },
                {KERNEL_DOWN,   PLAN_WORKER_FETCHING, 30 * SECONDS },
                {KERNEL_LIVE,   PLAN_WORKER_LEAVING,  10 * SECONDS },
                {KERNEL_LIVE,   PLAN_WORKER_NONE,     120 * SECONDS},
                {KERNEL_LIVE,   PLAN_WORKER_PARAMS,   120 * SECONDS},
        };

        for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
                struct attempt attempt = {};

                CHECK_INT(see(&attempt, waits[i].kernel, waits[i].worker, 1), TROUBLE_NONE);
                CHECK(attempt_due(&attempt, ACTION_WAIT, 1) <= 1 + waits[i].limit);
                CHECK_INT(see(&attempt, waits[i].kernel, waits[i].worker, waits[i].limit), TROUBLE_NONE);
                CHECK_INT(see(&attempt, waits[i].kernel, waits[i].worker, 1 + waits[i].limit), TROUBLE_STUCK);
        }
}

static void test_a_death_is_soon_asked_for(void)
{
        struct attempt attempt = {};

        see(&attempt, KERNEL_LIVE, PLAN_WORKER_NONE, 1);
        CHECK_INT(attempt_due(&attempt, ACTION_WAIT, 1), 1 + 2 * MS);
        CHECK_INT(attempt_due(&attempt, ACTION_WAIT, 1 + 100 * MS), 1 + 150 * MS);
        CHECK_INT(attempt_due(&attempt, ACTION_WAIT, 1 + 10 * SECONDS), 1 + 11 * SECONDS);
}

static void test_a_close_of_the_character_device_is_followed_up(void)
{
        struct attempt attempt = {};
        uint64_t closed = 1 + 10 * SECONDS;

        see(&attempt, KERNEL_LIVE, PLAN_WORKER_NONE, 1);
        attempt_closed(&attempt, closed);
        CHECK_INT(attempt_due(&attempt, ACTION_WAIT, closed), closed + 2 * MS);
        CHECK_INT(attempt_due(&attempt, ACTION_WAIT, closed + 100 * MS), closed + 150 * MS);

        attempt = (struct attempt){};
        see(&attempt, KERNEL_DOWN, PLAN_WORKER_PARAMS, 1);
        for (unsigned i = 0; i < 20; i++)
                attempt_done(&attempt, ACTION_BEGIN_RECOVERY, -EBUSY, 2);
        CHECK(attempt_due(&attempt, ACTION_BEGIN_RECOVERY, 3) > 3);
        attempt_closed(&attempt, 3);
        CHECK_INT(attempt_due(&attempt, ACTION_BEGIN_RECOVERY, 3), 3);

        /* as long as the close is still to come, few tries are in the way of it */
        attempt = (struct attempt){};
        see(&attempt, KERNEL_DOWN, PLAN_WORKER_PARAMS, 1);
        attempt_watch(&attempt, true);
        for (unsigned i = 0; i < 2; i++) { /* a driver that cancels late has not settled */
                attempt_done(&attempt, ACTION_BEGIN_RECOVERY, -EBUSY, 2);
                CHECK_INT(attempt_due(&attempt, ACTION_BEGIN_RECOVERY, 2), 2 + MS);
        }
        attempt_done(&attempt, ACTION_BEGIN_RECOVERY, -EBUSY, 2);
        CHECK_INT(attempt_due(&attempt, ACTION_BEGIN_RECOVERY, 2), 2 + 8 * MS);
        attempt_closed(&attempt, 3);
        CHECK_INT(attempt_due(&attempt, ACTION_BEGIN_RECOVERY, 3), 3);
        attempt_done(&attempt, ACTION_BEGIN_RECOVERY, -EBUSY, 3);
        CHECK_INT(attempt_due(&attempt, ACTION_BEGIN_RECOVERY, 3), 3 + MS);

        /* a driver that refuses for another reason is not asked earlier */
        attempt_done(&attempt, ACTION_BEGIN_RECOVERY, -EIO, 4);
        attempt_done(&attempt, ACTION_BEGIN_RECOVERY, -EIO, 4);
        attempt_closed(&attempt, 5);
        CHECK_INT(attempt_due(&attempt, ACTION_BEGIN_RECOVERY, 5), 4 + 100 * MS);
}

static void test_only_a_success_after_no_failure_is_one(void)
{
        struct attempt attempt = {};

        see(&attempt, KERNEL_DOWN, PLAN_WORKER_PARAMS, 1);
        attempt_done(&attempt, ACTION_BEGIN_RECOVERY, -EBUSY, 1);
        CHECK(!attempt_succeeded(&attempt));
        attempt_done(&attempt, ACTION_BEGIN_RECOVERY, -EALREADY, 1);
        CHECK(!attempt_succeeded(&attempt));
        attempt_done(&attempt, ACTION_BEGIN_RECOVERY, 0, 1);
        CHECK(attempt_succeeded(&attempt));
}

static void test_a_new_situation_has_no_past(void)
{
        struct attempt attempt = {};

        see(&attempt, KERNEL_ADDED, PLAN_WORKER_PARAMS, 1);
        for (unsigned i = 0; i < 9; i++)
                attempt_done(&attempt, ACTION_SET_PARAMS, -EIO, 1);
        CHECK_INT(see(&attempt, KERNEL_ADDED, PLAN_WORKER_PARAMS, 1), TROUBLE_STUCK);
        CHECK_INT(see(&attempt, KERNEL_ADDED, PLAN_WORKER_READY, 2), TROUBLE_NONE);
        CHECK(attempt_due(&attempt, ACTION_START_DEV, 2) <= 2);
}

static void test_after_a_way_out_other_steps_get_their_tries(void)
{
        struct attempt attempt = {};

        see(&attempt, KERNEL_LIVE, PLAN_WORKER_LEAVING, 1);
        for (unsigned i = 0; i < ATTEMPT_TRIES; i++)
                attempt_done(&attempt, ACTION_STOP_DEV, -EINTR, 1);
        CHECK_INT(see(&attempt, KERNEL_LIVE, PLAN_WORKER_LEAVING, 2), TROUBLE_STUCK);
        attempt_done(&attempt, ACTION_STOP_WORKER, 0, 2);
        CHECK_INT(see(&attempt, KERNEL_LIVE, PLAN_WORKER_LEAVING, 2), TROUBLE_NONE);
        attempt_done(&attempt, ACTION_STOP_DEV, -EINTR, 2);
        CHECK_INT(see(&attempt, KERNEL_LIVE, PLAN_WORKER_LEAVING, 2), TROUBLE_NONE);
        CHECK(attempt_due(&attempt, ACTION_STOP_DEV, 2) > 400 * MS); /* and the back-off goes on */
}

static void test_params_refused_after_a_start_are_refused_for_ever(void)
{
        struct attempt attempt = {};

        see(&attempt, KERNEL_ADDED, PLAN_WORKER_PARAMS, 1);
        attempt_done(&attempt, ACTION_SET_PARAMS, -EACCES, 1);
        CHECK_INT(see(&attempt, KERNEL_ADDED, PLAN_WORKER_PARAMS, 2), TROUBLE_STUCK);
        CHECK(attempt_due(&attempt, ACTION_STOP_WORKER, 2)
                <= 2); /* that this fails was expected: no back-off */
        attempt_done(&attempt, ACTION_STOP_WORKER, 0, 2);
        attempt_worker_died(&attempt, 3);
        CHECK_INT(see(&attempt, KERNEL_ADDED, PLAN_WORKER_NONE, 3), TROUBLE_NONE);
        CHECK(attempt_due(&attempt, ACTION_DEL_DEV, 3) <= 3);
        CHECK_INT(see(&attempt, KERNEL_ABSENT, PLAN_WORKER_NONE, 4), TROUBLE_NONE);
        CHECK(attempt_due(&attempt, ACTION_SPAWN, 4) <= 4);
}

static void test_an_add_that_was_given_up_is_watched_for(void)
{
        struct attempt attempt = {};
        struct plan_facts gone = {.want = WANT_ABSENT, .kernel = KERNEL_ABSENT, .worker = PLAN_WORKER_NONE};

        see(&attempt, KERNEL_ABSENT, PLAN_WORKER_PARAMS, 1);
        attempt_done(&attempt, ACTION_ADD_DEV, -ETIMEDOUT, 1);
        attempt_observe(&attempt, &gone, 2);
        CHECK(attempt_due(&attempt, ACTION_NOTHING, 2) < 2 + SECONDS);
        CHECK(attempt_due(&attempt, ACTION_NOTHING, 61 * SECONDS) == UINT64_MAX);
}

static void test_what_is_as_wanted_is_looked_at_now_and_then(void)
{
        struct attempt attempt = {};
        struct plan_facts gone = {.want = WANT_ABSENT, .kernel = KERNEL_ABSENT, .worker = PLAN_WORKER_NONE};

        see(&attempt, KERNEL_LIVE, PLAN_WORKER_SERVING, 1);
        CHECK_INT(attempt_due(&attempt, ACTION_NOTHING, 1), 1 + 60 * SECONDS);
        attempt_observe(&attempt, &gone, 2);
        CHECK(attempt_due(&attempt, ACTION_NOTHING, 2) == UINT64_MAX);
}

static void test_a_silent_kernel_is_asked_ever_slower(void)
{
        struct attempt attempt = {};

        CHECK_INT(attempt_blind(&attempt, 5), 5);
        CHECK_INT(attempt_blind(&attempt, 5), 5 + 100 * MS);
        see(&attempt, KERNEL_ABSENT, PLAN_WORKER_NONE, 6);
        CHECK_INT(attempt_blind(&attempt, 7), 7);
}

int main(void)
{
        test_failures_back_off_and_get_stuck();
        test_a_way_out_without_effect_is_not_repeated_at_once();
        test_a_success_without_effect_is_looked_at_ever_slower();
        test_busy_is_not_a_failure();
        test_a_failed_search_leaves_the_cause_unknown();
        test_a_number_is_waited_for();
        test_a_growth_that_was_given_up_is_not_overtaken();
        test_a_step_that_is_held_up_counts_slowly_and_is_due_once_released();
        test_a_disk_in_use_is_not_a_problem();
        test_a_recovery_waits_for_a_driver_that_cancels_late();
        test_three_refused_workers_are_hopeless();
        test_a_recovery_is_overdue();
        test_a_death_that_the_driver_never_notices_is_hopeless();
        test_a_worker_that_died_while_the_disk_went_live_was_not_refused();
        test_a_worker_that_was_never_observed();
        test_a_retiring_worker_may_finish();
        test_a_leaving_worker_may_finish();
        test_a_worker_that_cannot_be_retired_is_soon_stuck();
        test_waits_have_an_end();
        test_a_death_is_soon_asked_for();
        test_a_close_of_the_character_device_is_followed_up();
        test_only_a_success_after_no_failure_is_one();
        test_a_new_situation_has_no_past();
        test_after_a_way_out_other_steps_get_their_tries();
        test_params_refused_after_a_start_are_refused_for_ever();
        test_an_add_that_was_given_up_is_watched_for();
        test_what_is_as_wanted_is_looked_at_now_and_then();
        test_a_silent_kernel_is_asked_ever_slower();
        return check_report();
}
