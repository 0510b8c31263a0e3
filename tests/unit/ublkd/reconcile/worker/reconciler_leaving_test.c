/* SPDX-License-Identifier: MIT */
/* A worker that is replaced by LEAVE: the reconciler over a fake kernel and fake workers. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/proto/device_region.h"

#include <errno.h>
#include <sys/mman.h>

/* A live disk whose worker is asked to be replaced, after the preflight. more: of its spec. */
static struct fake_worker *begin_restart(struct world *world, uint64_t features, const char *more)
{
        struct fake_worker *serving;

        world_new(world);
        world->host.features = features;
        world_put_loop(world, "data", more);
        world_bring_up(world, "data", "file:1");
        serving = fake_worker("data");
        CHECK_INT(device_store_request_restart(world->store, "data", false), 0);
        world_settle(world, 20);
        if (CHECK(fake_worker("(preflight)")))
                fake_worker_open(fake_worker("(preflight)"), "file:1");
        world_settle(world, 5);
        if (CHECK(fake_worker("(preflight)")))
                fake_worker_die(fake_worker("(preflight)"));
        world_settle(world, 20);
        return serving;
}

static bool is_leaving(const struct fake_worker *worker)
{
        return worker->leaves && fake_worker_stage(worker) == WORKER_STAGE_LEAVING;
}

static void expect_another(struct world *world, enum condition_reason reason)
{
        static const char *const names[] = {"data"};

        world_settle(world, 20);
        world_churn(world, names, 1, "file:1");
        CHECK_INT(world_phase(world, "data"), PHASE_LIVE);
        CHECK_INT(world_record(world, "data")->status.worker.restarts, 1);
        CHECK_INT(world_record(world, "data")->status.recoveries.count, 0);
        CHECK_INT(world_count_events(world, reason), 1);
        CHECK_INT(fake_kills, 1); /* of the preflight */
        CHECK_INT(fake_kernel.quiesces, 0);
}

/* ublkd neither kills it nor starts another one, however long it has something in hand. */
static void it_is_asked_once_and_waited_for(void)
{
        struct fake_worker *serving;
        struct world world;

        serving = begin_restart(&world, WORLD_RECOVERS, ",\"recovery\":{\"trigger\":\"manual\"}");
        CHECK(is_leaving(serving));
        serving->leaves = false;
        world_settle(&world, 300);
        CHECK(fake_worker("data") == serving && !serving->leaves && !fake_worker("(preflight)"));
        CHECK(world_phase(&world, "data") != PHASE_LIVE);
        fake_worker_die(serving);
        expect_another(&world, REASON_WORKER_RETIRED);
        CHECK_INT(world_count_events(&world, REASON_WORKER_KILLED), 0);
        world_free(&world);
}

static void it_dies_instead(void)
{
        struct fake_worker *serving;
        struct world world;

        serving = begin_restart(&world, WORLD_RECOVERS, "");
        CHECK(is_leaving(serving));
        serving->crashes = true;
        fake_worker_die(serving);
        expect_another(&world, REASON_WORKER_DIED);
        world_free(&world);
}

/* QUIESCE_DEV does not end while a write waits for room; a worker leaves without it. */
static void it_leaves_while_writes_wait_for_room(void)
{
        struct fake_worker *serving;
        struct region_control *control;
        struct world world;

        world_new(&world);
        world.host.features = WORLD_QUIESCES;
        control = world_bring_up_with_region(&world, ",\"onFull\":\"wait\"");
        control->space.waiting = 1;
        serving = fake_worker("data");
        CHECK_INT(device_store_request_restart(world.store, "data", false), 0);
        world_settle(&world, 20);
        fake_worker_open(fake_worker("(preflight)"), "file:1");
        world_settle(&world, 5);
        fake_worker_die(fake_worker("(preflight)"));
        world_settle(&world, 20);
        CHECK(is_leaving(serving));
        fake_worker_die(serving);
        expect_another(&world, REASON_WORKER_RETIRED);
        CHECK_INT(control->space.on_full, REGION_ON_FULL_WAIT);
        world_free(&world);
}

/* The next ublkd waits for it as well. */
static void ublkd_dies_meanwhile(void)
{
        static const char *const names[] = {"data"};
        struct fake_worker *leaving;
        struct world world;

        (void)begin_restart(&world, WORLD_RECOVERS, "");
        world_restart_with_workers(&world);
        leaving = fake_worker("data");
        fake_worker_greet_as(leaving, world_record(&world, "data")->epoch, 0, WORKER_STAGE_LEAVING);
        world_settle(&world, 100);
        CHECK(fake_worker("data") == leaving && !leaving->leaves && !fake_worker("(preflight)"));
        CHECK_INT(fake_kills, 1);
        fake_worker_die(leaving);
        world_settle(&world, 20);
        world_churn(&world, names, 1, "file:1");
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK_INT(fake_kills, 1);
        CHECK_INT(world_count_events(&world, REASON_WORKER_RETIRED), 1);
        CHECK_INT(world_count_events(&world, REASON_WORKER_DIED), 0);
        world_free(&world);
}

/* The disk is stopped, and the worker is not killed. */
static void the_device_is_removed_meanwhile(void)
{
        static const char *const names[] = {"data"};
        struct fake_worker *serving;
        struct world world;

        serving = begin_restart(&world, WORLD_RECOVERS, "");
        CHECK(is_leaving(serving));
        CHECK_INT(device_store_request_delete(world.store, "data", true), 0);
        world_settle(&world, 20);
        world_churn(&world, names, 1, "file:1");
        CHECK_INT(fake_kills, 1);
        world_wait_gone(&world, "data");
        CHECK(!fake_disks[0].exists);
        world_free(&world);
}

/* An opener that no search has seen: only the driver knows of it. */
static void has_unseen_opener(bool has)
{
        fake_disks[0].openers = has;
        fake_kernel.hold_error = has ? -EBUSY : 0;
}

static void ask_removal(struct world *world, bool disables)
{
        if (disables)
                world_put_loop(world, "data", ",\"enabled\":false");
        else
                CHECK_INT(device_store_request_delete(world->store, "data", false), 0);
}

/* Without a worker the driver could not be asked whether the disk has openers. */
static void a_removal_waits_for_the_next_worker(void)
{
        static const uint64_t features[] = {WORLD_RECOVERS, WORLD_TRIES_TO_STOP};
        static const char *const names[] = {"data"};
        struct fake_worker *serving;
        struct world world;

        for (unsigned i = 0; i < 2 * ARRAY_SIZE(features); i++) {
                bool disables = i % 2;

                serving = begin_restart(&world, features[i / 2], "");
                CHECK(is_leaving(serving));
                has_unseen_opener(true);
                ask_removal(&world, disables);
                world_settle(&world, 100);
                CHECK(fake_worker("data") == serving);
                CHECK_INT(fake_disks[0].state, KERNEL_STATE_LIVE);
                fake_worker_die(serving);
                world_settle(&world, 20);
                CHECK_INT(fake_disks[0].state, KERNEL_STATE_QUIESCED);
                world_churn(&world, names, 1, "file:1");
                world_wait_reason(&world, "data", REASON_IN_USE);
                CHECK_INT(fake_disks[0].state, KERNEL_STATE_LIVE);
                CHECK_INT(fake_kills, 1); /* of the preflight */
                has_unseen_opener(false);
                if (disables)
                        world_wait_reason(&world, "data", REASON_DISABLED);
                else
                        world_wait_gone(&world, "data");
                CHECK(!fake_disks[0].exists);
                world_free(&world);
        }
}

static void a_removal_does_not_wait_if_the_next_worker_cannot_serve(void)
{
        struct fake_worker *serving;
        struct world world;

        serving = begin_restart(&world, WORLD_TRIES_TO_STOP, "");
        CHECK(is_leaving(serving));
        ask_removal(&world, false);
        world_settle(&world, 20);
        fake_worker_die(serving);
        world_settle(&world, 20);
        CHECK_INT(fake_disks[0].state, KERNEL_STATE_QUIESCED);
        fake_worker_refuse(fake_worker("data"), "BackingFileMissing", "The store is gone.");
        world_wait_gone(&world, "data");
        CHECK(!fake_disks[0].exists);
        world_free(&world);
}

/* The ublkd that sent LEAVE has died. */
static void a_removal_waits_although_ublkd_has_died(void)
{
        static const char *const names[] = {"data"};
        struct fake_worker *leaving;
        struct world world;

        (void)begin_restart(&world, WORLD_TRIES_TO_STOP, "");
        has_unseen_opener(true);
        ask_removal(&world, false);
        world_restart_with_workers(&world);
        leaving = fake_worker("data");
        fake_worker_greet_as(leaving, world_record(&world, "data")->epoch, 0, WORKER_STAGE_LEAVING);
        world_settle(&world, 100);
        CHECK_INT(fake_disks[0].state, KERNEL_STATE_LIVE);
        fake_worker_die(leaving);
        world_settle(&world, 20);
        world_churn(&world, names, 1, "file:1");
        world_wait_reason(&world, "data", REASON_IN_USE);
        CHECK_INT(fake_disks[0].state, KERNEL_STATE_LIVE);
        has_unseen_opener(false);
        world_wait_gone(&world, "data");
        world_free(&world);
}

/* It died between two workers. Before, the next ublkd stopped the disk at once. */
static void a_removal_waits_although_ublkd_has_died_without_a_worker(void)
{
        static const char *const names[] = {"data"};
        struct world world;

        for (int serves = 0; serves < 2; serves++) {
                (void)begin_restart(&world, WORLD_TRIES_TO_STOP, "");
                has_unseen_opener(true);
                ask_removal(&world, false);
                world_stop_reconciler(&world);
                fake_disks[0].state = KERNEL_STATE_QUIESCED;
                world_start_reconciler(&world);
                world_settle(&world, 100);
                CHECK_INT(fake_disks[0].state, KERNEL_STATE_QUIESCED);
                if (serves) {
                        world_churn(&world, names, 1, "file:1");
                        world_wait_reason(&world, "data", REASON_IN_USE);
                        CHECK_INT(fake_disks[0].state, KERNEL_STATE_LIVE);
                        has_unseen_opener(false);
                } else {
                        has_unseen_opener(false);
                        fake_worker_refuse(fake_worker("data"), "BackingFileMissing", "The store is gone.");
                }
                world_wait_gone(&world, "data");
                CHECK(!fake_disks[0].exists);
                world_free(&world);
        }
}

/* The worker that ublkd found died before its HELLO: the next one is not the first. */
static void a_silent_death_counts_for_a_removal(void)
{
        struct world world;

        (void)begin_restart(&world, WORLD_TRIES_TO_STOP, "");
        ask_removal(&world, false);
        world_restart_with_workers(&world);
        fake_worker_die(fake_worker("data"));
        fake_disks[0].state = KERNEL_STATE_QUIESCED;
        world_settle(&world, 20);
        CHECK_INT(fake_disks[0].state, KERNEL_STATE_QUIESCED);
        if (CHECK(fake_worker("data")))
                fake_worker_refuse(fake_worker("data"), "BackingFileMissing", "The store is gone.");
        world_wait_gone(&world, "data");
        CHECK(!fake_disks[0].exists);
        world_free(&world);
}

int main(void)
{
        fake_adopt_error = -ENOENT;
        fake_leaves = true;
        it_is_asked_once_and_waited_for();
        it_dies_instead();
        it_leaves_while_writes_wait_for_room();
        ublkd_dies_meanwhile();
        the_device_is_removed_meanwhile();
        a_removal_waits_for_the_next_worker();
        a_removal_does_not_wait_if_the_next_worker_cannot_serve();
        a_removal_waits_although_ublkd_has_died();
        a_removal_waits_although_ublkd_has_died_without_a_worker();
        a_silent_death_counts_for_a_removal();
        return check_report();
}
