/* SPDX-License-Identifier: MIT */
/* An action of a device: its worker is asked for it once, and its end is what the region and the worker say, also after the
 * death of a worker or of ublkd. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"
#include "ublkd/proto/region_action.h"
#include "ublkd/store/store_actions.h"
#include "ublkd/workers/worker_proc.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum { LATE_MS = 3500, BEGIN_MS = 11000, RETRY_SEC = 31 };

/* How far the clock of ublkd has been put forward; the timers of its loop are the kernel's. */
static time_t later;

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
        int r = __real_clock_gettime(clock, ret);

        ret->tv_sec += clock == CLOCK_MONOTONIC ? later : 0;
        return r;
}

static const struct device_action *action_of(const struct world *world)
{
        const struct device_actions *actions = world_record(world, "data")->actions;

        return actions->items[actions->count - 1];
}

/* The device is live, and a client has started an action. */
static uint64_t begin(struct world *world, struct region_control **ret)
{
        uint64_t id = 0;

        world_new(world);
        *ret = world_bring_up_with_region(world, "");
        CHECK_INT(device_store_begin_action(world->store, "data", "scrub", "{}", &id), 0);
        world_settle(world, 20);
        return id;
}

static void take_a_turn(struct world *world)
{
        (void)device_store_request_recover(world->store, "data"); /* a turn, as after NEWS */
        world_settle(world, 20);
}

static uint64_t started_at(void)
{
        return worker_proc_started_at(fake_worker("data")->stand_in.proc);
}

static void its_end_is_that_of_the_region(void)
{
        struct region_control *control;
        struct world world;
        uint64_t id = begin(&world, &control);

        CHECK_INT(fake_worker("data")->action, id);
        CHECK_INT(action_of(&world)->state, DEVICE_ACTION_RUNNING);
        region_action_begin(control, id, started_at());
        region_action_progress(control, 5, 10);
        fake_worker("data")->action = 0;
        take_a_turn(&world);
        CHECK(action_of(&world)->state == DEVICE_ACTION_RUNNING && action_of(&world)->done == 5);
        CHECK_INT(fake_worker("data")->action, 0); /* it is asked once */
        region_action_found(control, 4096, 512);
        region_action_progress(control, 10, 10);
        region_action_end(control, REGION_ACTION_DONE, 0);
        take_a_turn(&world);
        take_a_turn(&world);
        CHECK_INT(action_of(&world)->state, DEVICE_ACTION_SUCCEEDED);
        CHECK(action_of(&world)->result && strstr(action_of(&world)->result, "4096"));
        CHECK_INT(world_count_events(&world, REASON_ACTION_SUCCEEDED), 1);
        world_free(&world);
}

static void an_older_worker_has_none(void)
{
        struct region_control *control;
        struct world world;

        fake_acts = false;
        (void)begin(&world, &control);
        CHECK_INT(fake_worker("data")->action, 0);
        CHECK_INT(action_of(&world)->reason, REASON_ACTION_UNSUPPORTED);
        fake_acts = true;
        world_free(&world);
}

/* The next worker does not go on with it, and the client reads of an interruption, not of a cancellation. */
static void it_ends_with_its_worker(void)
{
        struct region_control *control;
        struct world world;
        uint64_t id = begin(&world, &control);

        region_action_begin(control, id, started_at());
        fake_worker_die(fake_worker("data"));
        fake_disks[0].state = KERNEL_STATE_QUIESCED;
        world_settle(&world, 0);
        CHECK_INT(action_of(&world)->state,
                DEVICE_ACTION_RUNNING); /* a recovery does not wait for the database */
        world_bring_up(&world, "data", "file:1");
        take_a_turn(&world);
        CHECK_INT(action_of(&world)->state, DEVICE_ACTION_RUNNING); /* other disks may still recover */
        world_settle(&world, LATE_MS);
        CHECK(action_of(&world)->state == DEVICE_ACTION_FAILED && !action_of(&world)->cancel_requested);
        CHECK_INT(action_of(&world)->reason, REASON_ACTION_INTERRUPTED);
        CHECK_INT(fake_worker("data")->action, 0);
        CHECK_INT(world_count_events(&world, REASON_ACTION_INTERRUPTED), 1);
        world_free(&world);
}

static void a_cancellation_goes_through_the_region(void)
{
        struct region_control *control;
        struct world world;
        uint64_t id = begin(&world, &control);

        region_action_begin(control, id, started_at());
        CHECK_INT(device_store_cancel_action(world.store, "data", id), 0);
        world_settle(&world, 20);
        CHECK(region_action_is_cancelled(control, id));
        CHECK_INT(action_of(&world)->state, DEVICE_ACTION_RUNNING);
        region_action_end(control, REGION_ACTION_CANCELLED, 0);
        take_a_turn(&world);
        CHECK_INT(action_of(&world)->state, DEVICE_ACTION_CANCELLED);
        CHECK_INT(world_count_events(&world, REASON_ACTION_CANCELLED), 1);
        world_free(&world);
}

/* What a worker has written of another action does not end this one. */
static void the_end_of_another_is_not_its_own(void)
{
        struct region_control *control;
        struct world world;
        uint64_t id = begin(&world, &control);

        region_action_begin(control, id - 1, started_at());
        region_action_end(control, REGION_ACTION_DONE, 0);
        take_a_turn(&world);
        CHECK_INT(action_of(&world)->state, DEVICE_ACTION_RUNNING);
        CHECK_INT(world_count_events(&world, REASON_ACTION_SUCCEEDED), 0);
        world_free(&world);
}

/* A worker that takes the order only after that ends it at once. */
static void one_that_was_not_taken_in_time_is_cancelled(void)
{
        struct region_control *control;
        struct world world;
        uint64_t id = begin(&world, &control);

        world_settle(&world, BEGIN_MS);
        CHECK_INT(action_of(&world)->reason, REASON_ACTION_NOT_TAKEN);
        region_action_begin(control, id, started_at());
        CHECK(region_action_is_cancelled(control, id));
        world_free(&world);
}

/* As after the loss of the database: the worker goes on with an action of which ublkd does not know. */
static void one_of_another_database_is_ended_first(void)
{
        struct region_control *control;
        struct world world;
        uint64_t id = 0;

        world_new(&world);
        control = world_bring_up_with_region(&world, "");
        region_action_begin(control, 1, started_at());
        CHECK_INT(device_store_begin_action(world.store, "data", "scrub", "{}", &id), 0);
        world_settle(&world, 20);
        CHECK(region_action_is_cancelled(control, 1));
        CHECK_INT(action_of(&world)->state, DEVICE_ACTION_PENDING);
        CHECK_INT(fake_worker("data")->action, 0);
        CHECK_INT(device_store_cancel_action(world.store, "data", id), 0);
        world_settle(&world, 20);
        CHECK_INT(action_of(&world)->state, DEVICE_ACTION_CANCELLED);
        CHECK(region_action_is_cancelled(control, 1)); /* still: it has not ended */
        CHECK_INT(device_store_begin_action(world.store, "data", "scrub", "{}", &id), 0);
        world_settle(&world, 20);
        region_action_end(control, REGION_ACTION_CANCELLED, 0);
        take_a_turn(&world);
        CHECK_INT(fake_worker("data")->action, id);
        world_free(&world);
}

/* As after a boot of a kernel without the driver. */
static void it_ends_where_nothing_can_be_served(void)
{
        struct region_control *control;
        struct world world;
        uint64_t id = begin(&world, &control);

        region_action_begin(control, id, started_at());
        fake_worker_die(fake_worker("data"));
        reconciler_set_control(world.reconciler, NULL);
        take_a_turn(&world);
        CHECK_INT(action_of(&world)->state, DEVICE_ACTION_FAILED);
        CHECK_INT(action_of(&world)->reason, REASON_ACTION_INTERRUPTED);
        world_free(&world);
}

/* A turn that needs no database. */
static void wake(struct world *world)
{
        reconciler_set_control(world->reconciler, world->ctl);
        world_settle(world, 20);
}

/* The end is stored when the database can be written again, with the result that it had; until then there is one warning, and
 * the database is left alone. */
static void its_end_is_stored_when_the_database_is_back(void)
{
        struct region_control *control;
        struct world world;
        uint64_t id = begin(&world, &control);

        region_action_begin(control, id, started_at());
        region_action_found(control, 4096, 512);
        region_action_progress(control, 10, 10);
        region_action_end(control, REGION_ACTION_DONE, 0);
        world.disk.write_error = -ENOSPC;
        wake(&world);
        CHECK_INT(action_of(&world)->state, DEVICE_ACTION_RUNNING);
        CHECK_INT(world_count_events(&world, REASON_NOT_STORED), 1);
        later += RETRY_SEC;
        wake(&world);
        CHECK_INT(action_of(&world)->state, DEVICE_ACTION_RUNNING);
        CHECK_INT(world_count_events(&world, REASON_NOT_STORED), 1);
        world.disk.write_error = 0;
        wake(&world);
        CHECK_INT(action_of(&world)->state, DEVICE_ACTION_RUNNING); /* not before its time */
        later += RETRY_SEC;
        wake(&world);
        CHECK_INT(action_of(&world)->state, DEVICE_ACTION_SUCCEEDED);
        CHECK(action_of(&world)->result && strstr(action_of(&world)->result, "4096"));
        CHECK_INT(world_count_events(&world, REASON_ACTION_SUCCEEDED), 1);
        world_free(&world);
}

/* No worker is asked for an action that the database does not have as RUNNING. */
static void it_is_not_begun_before_the_database_has_it(void)
{
        struct region_control *control;
        struct world world;
        uint64_t id = 0;

        world_new(&world);
        control = world_bring_up_with_region(&world, "");
        CHECK_INT(device_store_begin_action(world.store, "data", "scrub", "{}", &id), 0);
        world.disk.write_error = -EIO;
        world_settle(&world, 20);
        CHECK_INT(action_of(&world)->state, DEVICE_ACTION_PENDING);
        CHECK_INT(fake_worker("data")->action, 0);
        CHECK_INT(world_count_events(&world, REASON_NOT_STORED), 1);
        CHECK_INT(region_action_id(control), 0);
        world.disk.write_error = 0;
        later += RETRY_SEC;
        wake(&world);
        CHECK_INT(action_of(&world)->state, DEVICE_ACTION_RUNNING);
        CHECK_INT(fake_worker("data")->action, id);
        world_free(&world);
}

/* A kernel timer brings the turn: nothing else happens to the device. */
static void a_timer_brings_the_retry(void)
{
        struct region_control *control;
        struct world world;
        uint64_t id;

        later = 0;
        id = begin(&world, &control);
        region_action_begin(control, id, started_at());
        region_action_end(control, REGION_ACTION_DONE, 0);
        later = 2 - RETRY_SEC; /* the timer is due in two seconds */
        world.disk.write_error = -EIO;
        wake(&world);
        world.disk.write_error = 0;
        later = 0;
        world_settle(&world, LATE_MS);
        CHECK_INT(action_of(&world)->state, DEVICE_ACTION_SUCCEEDED);
        world_free(&world);
}

int main(void)
{
        fake_acts = true;
        its_end_is_that_of_the_region();
        an_older_worker_has_none();
        it_ends_with_its_worker();
        a_cancellation_goes_through_the_region();
        the_end_of_another_is_not_its_own();
        one_that_was_not_taken_in_time_is_cancelled();
        one_of_another_database_is_ended_first();
        it_ends_where_nothing_can_be_served();
        its_end_is_stored_when_the_database_is_back();
        it_is_not_begun_before_the_database_has_it();
        a_timer_brings_the_retry();
        return check_report();
}
