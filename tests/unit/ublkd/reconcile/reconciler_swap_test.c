/* SPDX-License-Identifier: MIT */
/* Swap on a disk: reported while it is there, with one event for each time. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"
#include "ublkd/reconcile/reconciler_events.h"

/* ---- the list of swap areas ---- */

static bool swapped;

bool __wrap_swap_watch_has(const struct swap_watch *watch, int number);
bool __wrap_swap_watch_has(const struct swap_watch *watch, int number)
{
        CHECK(!watch); /* the reconciler of a test watches nothing */
        return swapped && number == 0;
}

static void swap(struct world *world, bool on)
{
        swapped = on;
        reconciler_swap_changed(world->reconciler, 0);
        reconciler_swap_changed(world->reconciler, 1); /* no disk of a device */
        world_settle(world, 20);
}

/* ---- the device ---- */

static void check(const struct world *world, enum condition_status status, unsigned events)
{
        const struct device_condition *condition =
                &world_record(world, "data")->status.conditions.of[CONDITION_SWAP_SAFE];

        CHECK_INT(condition->status, status);
        CHECK_INT(condition->reason, status == CONDITION_ABSENT ? REASON_NONE : REASON_SWAP_NEEDS_MEMORY);
        CHECK_INT(world_count_events(world, REASON_SWAP_NEEDS_MEMORY), events);
}

static void bring_up(struct world *world)
{
        swapped = false;
        world_new(world);
        world_put_loop(world, "data", ",\"id\":0");
        world_bring_up(world, "data", "file:1");
        check(world, CONDITION_ABSENT, 0);
}

static void swap_is_reported_while_it_is_there(void)
{
        struct world world;

        bring_up(&world);
        swap(&world, true);
        check(&world, CONDITION_FALSE, 1);
        swap(&world, true);
        check(&world, CONDITION_FALSE, 1);
        swap(&world, false);
        check(&world, CONDITION_ABSENT, 1);
        swap(&world, true);
        check(&world, CONDITION_FALSE, 2);
        world_free(&world);
}

/* No turn of the next reconciler, which takes the worker over, drops the condition for a moment: the store would have
 * another event. */
static void it_stays_while_a_worker_is_adopted(void)
{
        struct world world;

        bring_up(&world);
        swap(&world, true);
        world_restart_with_workers(&world);
        fake_worker_greet(fake_worker("data"), world_record(&world, "data")->epoch, 0);
        world_settle(&world, 20);
        check(&world, CONDITION_FALSE, 1);
        world_free(&world);
}

int main(void)
{
        swap_is_reported_while_it_is_there();
        it_stays_while_a_worker_is_adopted();
        return check_report();
}
