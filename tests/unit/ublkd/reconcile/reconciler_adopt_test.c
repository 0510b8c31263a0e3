/* SPDX-License-Identifier: MIT */
/* ublkd leaves a device alone whose record is older than its disk. It finds the disk of an adopted device as
 * at a start. */
#include "tests/unit/ublkd/reconcile/reconciler_world.h"

#include "tests/unit/check.h"
#include "ublkd/reconcile/reconciler_events.h"

#include <stdlib.h>

/* Create the disk of `data` for the epoch after that of the store. */
static void make_outdated(struct world *world, enum record_age age)
{
        world_new(world);
        world_put_loop(world, "data", "");
        world_bring_up(world, "data", "file:1");
        world_stop_reconciler(world);
        fake_disks[0].cookie++;
        CHECK_INT(device_store_set_age(world->store, "data", age), 0);
        fake_kernel.looks = 0;
        fake_adopt_error = 0;
        world_start_reconciler(world);
        world_settle(world, 20);
}

static void check_left_alone(const struct world *world, enum condition_reason reason)
{
        CHECK_INT(fake_kernel.looks, 0); /* ublkd does not act without asking */
        CHECK_INT(fake_kills, 0);
        CHECK(!fake_worker("data"));
        CHECK(fake_disks[0].exists && fake_disks[0].state == KERNEL_STATE_LIVE);
        CHECK_INT(world_phase(world, "data"), PHASE_FAILED);
        CHECK_INT(world_record(world, "data")->status.reason, reason);
}

static void an_older_record_changes_nothing(void)
{
        struct world world;

        make_outdated(&world, RECORD_OUTDATED);
        check_left_alone(&world, REASON_RECORD_OUTDATED);
        reconciler_set_control(world.reconciler, NULL); /* the driver goes and comes */
        reconciler_set_control(world.reconciler, world.ctl);
        reconciler_disk_changed(world.reconciler, 0);
        CHECK_INT(device_store_request_recover(world.store, "data"), 0);
        CHECK_INT(device_store_request_restart(world.store, "data", false), 0);
        CHECK_INT(device_store_request_delete(world.store, "data", true), 0);
        world_settle(&world, 20);
        check_left_alone(&world, REASON_RECORD_OUTDATED);
        fake_adopt_error = -ENOENT;
        world_free(&world);
}

static void its_backing_store_stays_its_own(void)
{
        struct world world;

        make_outdated(&world, RECORD_OUTDATED);
        fake_adopt_error = -ENOENT;
        world_put_loop(&world, "other", "");
        world_settle(&world, 0);
        fake_worker_open(fake_worker("other"), "file:1");
        world_settle(&world, 5);
        CHECK(strstr(world_record(&world, "other")->status.message, "\"data\""));
        CHECK(!fake_disks[1].exists);
        world_free(&world);
}

static void adopt(struct world *world)
{
        struct device_record newer = *world_record(world, "data");
        const struct device_record *record;
        char *text = cJSON_PrintUnformatted(newer.spec->document);

        newer.name = strdup(newer.name);
        newer.epoch++;
        newer.generation++;
        CHECK_INT(device_store_adopt(world->store, &newer, text, "data", &record), 0);
        free(newer.name);
        cJSON_free(text);
}

static void the_newer_record_finds_the_worker(void)
{
        struct world world;

        make_outdated(&world, RECORD_OUTDATED);
        adopt(&world);
        world_settle(&world, 0);
        if (CHECK(fake_worker("data")))
                fake_worker_greet(fake_worker("data"), 2, 0);
        fake_adopt_error = -ENOENT;
        world_settle(&world, 5);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK_INT(fake_kills, 0);
        CHECK_INT(fake_kernel.adds, 1);
        CHECK(fake_disks[0].exists);
        CHECK_INT(world_record(&world, "data")->number, 0);
        world_free(&world);
}

static void the_newer_record_recovers_a_disk_without_a_worker(void)
{
        struct world world;

        make_outdated(&world, RECORD_OUTDATED);
        fake_disks[0].state = KERNEL_STATE_QUIESCED;
        fake_adopt_error = -ENOENT;
        adopt(&world);
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(fake_kernel.adds, 1);
        CHECK_INT(fake_disks[0].state, KERNEL_STATE_LIVE);
        world_free(&world);
}

static void the_record_of_a_removed_device_may_go(void)
{
        struct world world;

        make_outdated(&world, RECORD_REMOVED);
        check_left_alone(&world, REASON_RECORD_REMOVED);
        fake_disks[0].exists = false;
        fake_adopt_error = -ENOENT;
        CHECK_INT(device_store_request_delete(world.store, "data", false), 0);
        world_wait_gone(&world, "data");
        world_free(&world);
}

int main(void)
{
        an_older_record_changes_nothing();
        its_backing_store_stays_its_own();
        the_newer_record_finds_the_worker();
        the_newer_record_recovers_a_disk_without_a_worker();
        the_record_of_a_removed_device_may_go();
        return check_report();
}
