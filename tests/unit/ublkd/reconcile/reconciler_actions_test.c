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

int main(void)
{
        fake_acts = true;
        its_end_is_that_of_the_region();
        an_older_worker_has_none();
        it_ends_with_its_worker();
        a_cancellation_goes_through_the_region();
        the_end_of_another_is_not_its_own();
        return check_report();
}
