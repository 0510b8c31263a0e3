/* SPDX-License-Identifier: MIT */
/* Which worker needs a restart: ublkd compares what each worker says with what the last one says that it has started. */
#include "tests/unit/ublkd/reconcile/reconciler_world.h"

#include "tests/unit/check.h"

static bool needs_restart(const struct world *world, const char *name)
{
        return device_status_needs_restart(&world_record(world, name)->status);
}

/* A world of that version with two disks, whose workers have it as well. */
static void begin(struct world *world, const char *version)
{
        world_new(world);
        world_stop_reconciler(world);
        world->version = fake_version = version;
        world_start_reconciler(world);
        world_put_loop(world, "a", "");
        world_bring_up(world, "a", "file:1");
        world_put_loop(world, "b", "");
        world_bring_up(world, "b", "file:2");
        CHECK(!needs_restart(world, "a") && !needs_restart(world, "b"));
}

static void adopt_both(struct world *world)
{
        world_restart_with_workers(world);
        fake_worker_greet(fake_worker("a"), world_record(world, "a")->epoch, 0);
        fake_worker_greet(fake_worker("b"), world_record(world, "b")->epoch, 1);
        world_settle(world, 5);
        CHECK_INT(world_phase(world, "a"), PHASE_LIVE);
        CHECK_INT(world_phase(world, "b"), PHASE_LIVE);
}

static void adopted_workers_of_another_version_need_one(void)
{
        struct world world;

        begin(&world, "1.0");
        world.version = "1.1";
        world_stop_reconciler(&world);
        adopt_both(&world);
        CHECK(needs_restart(&world, "a") && needs_restart(&world, "b"));
        CHECK_INT(world_record(&world, "a")->status.conditions.of[CONDITION_NEEDS_RESTART].reason,
                REASON_OTHER_VERSION);

        /* A new worker of the new version. */
        fake_version = "1.1";
        fake_worker_die(fake_worker("a"));
        world_settle(&world, 5);
        world_bring_up(&world, "a", "file:1");
        CHECK_INT(world_phase(&world, "a"), PHASE_LIVE);
        CHECK(!needs_restart(&world, "a") && needs_restart(&world, "b"));

        /* Back to the old version. */
        world.version = "1.0";
        world_stop_reconciler(&world);
        fake_version = "1.0";
        adopt_both(&world); /* both say 1.0 */
        CHECK(!needs_restart(&world, "a") && !needs_restart(&world, "b"));
        world_free(&world);
}

/* A package has the new program in place before it restarts ublkd. */
static void what_ublkd_starts_counts_and_not_its_own_version(void)
{
        struct world world;

        begin(&world, "1.0");
        fake_version = "1.1";
        fake_worker_die(fake_worker("a"));
        world_settle(&world, 5);
        world_bring_up(&world, "a", "file:1");
        CHECK(!needs_restart(&world, "a")); /* it is what ublkd starts */
        CHECK(needs_restart(&world, "b"));
        world_free(&world);
}

int main(void)
{
        adopted_workers_of_another_version_need_one();
        what_ublkd_starts_counts_and_not_its_own_version();
        return check_report();
}
