/* SPDX-License-Identifier: MIT */
/* Creating, changing and removing a disk: the reconciler over a fake kernel and fake workers. */
#include "tests/unit/check.h"
#include "ublkd/model/device_cookie.h"
#include "ublkd/plan/attempt.h"

#include "tests/unit/ublkd/reconcile/reconciler_world.h"
#include "ublkd/base/clock.h"

#include <unistd.h>

enum { DISKS = 8 };

static void many_devices_that_choose_a_number_at_once(void)
{
        struct world world;
        char name[16], key[16];

        world_new(&world);
        for (int i = 0; i < DISKS; i++) {
                snprintf(name, sizeof(name), "disk-%d", i);
                world_put_loop(&world, name, "");
        }
        world_settle(&world, 0);
        for (int i = 0; i < DISKS; i++) {
                snprintf(name, sizeof(name), "disk-%d", i);
                snprintf(key, sizeof(key), "file:%d", i);
                fake_worker_open(fake_worker(name), key);
        }
        world_settle(&world, 5);
        for (int i = 0; i < DISKS; i++)
                CHECK(fake_disks[i].exists);
        CHECK_INT(fake_kills, 0);
        world_free(&world);
}

/* A device with a number may be unknown to the kernel. */
static void what_never_had_a_driver_is_dropped_without_one(void)
{
        struct world world;

        world_new(&world);
        reconciler_set_control(world.reconciler, NULL);
        world_put_loop(&world, "data", ",\"id\":7");
        world_settle(&world, 0);
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_HOST_NOT_READY);
        CHECK_INT(device_store_request_delete(world.store, "data", false), 0);
        world_settle(&world, 5);
        CHECK(!world_record(&world, "data"));
        world_free(&world);
}

static void a_stranger_that_is_faster_gets_another_number(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        fake_kernel.hurried = true;
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(world_record(&world, "data")->number, 1);
        CHECK_INT(fake_disks[0].cookie, FAKE_FOREIGN);
        world_free(&world);
}

/* The number of a deleted disk is free some milliseconds after the kernel does not find the disk any more. */
static void a_number_that_is_being_released_is_waited_for(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", ",\"id\":3");
        fake_kernel.releases = 2;
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(world_record(&world, "data")->number, 3);
        CHECK_INT(fake_kernel.adds, 3);
        world_free(&world);
}

static void begin_waiting_for_number_3(struct world *world)
{
        world_new(world);
        world_put_loop(world, "data", ",\"id\":3");
        fake_kernel.releases = 1000;
        world_settle(world, 0);
        fake_worker_open(fake_worker("data"), "file:1");
}

static void a_number_that_is_not_released_is_reported(void)
{
        struct world world;

        begin_waiting_for_number_3(&world);
        world_wait_reason(&world, "data", REASON_NUMBER_TAKEN);
        CHECK_INT(world_phase(&world, "data"), PHASE_BACKOFF);
        world_free(&world);
}

/* The status shows the failure all the time, also while ublkd tries another worker. */
static void a_foreign_number_is_reported_all_the_time(void)
{
        struct world world;

        world_new(&world);
        fake_disk_comes(3);
        world_put_loop(&world, "data", ",\"id\":3");
        world_settle(&world, 0);
        fake_worker_open(fake_worker("data"), "file:1");
        world_wait_reason(&world, "data", REASON_NUMBER_TAKEN);
        for (bool killed = false; !killed || !fake_worker("data");) {
                world_settle(&world, 0);
                CHECK_INT(world_phase(&world, "data"), PHASE_BACKOFF);
                CHECK_INT(world_record(&world, "data")->status.reason, REASON_NUMBER_TAKEN);
                if (!killed && fake_kills > 0) {
                        fake_worker_die(fake_worker("data"));
                        killed = true;
                        world_settle(&world, 0);
                }
        }
        CHECK_INT(world_phase(&world, "data"), PHASE_BACKOFF);
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_NUMBER_TAKEN);
        world_free(&world);
}

/* A failure at one number is not reported for the next one. */
static void a_number_that_is_being_released_is_not_foreign(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        fake_kernel.hurried = true;
        fake_kernel.releases = 1;
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(world_record(&world, "data")->number, 1);
        CHECK_INT(fake_kernel.adds, 3); /* another program was first; too early; done */
        world_free(&world);
}

static void a_failed_question_to_the_kernel_is_reported_during_the_release(void)
{
        struct world world;

        begin_waiting_for_number_3(&world);
        world_settle(&world, 2);
        fake_kernel.get_info_error = -EIO;
        world_wait_reason(&world, "data", REASON_CONTROL_PLANE);
        CHECK(strstr(world_record(&world, "data")->status.message, "/dev/ublkb3"));
        CHECK_INT(world_phase(&world, "data"), PHASE_BACKOFF);
        world_free(&world);
}

/* An ADD_DEV that ublkd gave up creates its disk after the user has chosen another number. */
static void a_late_disk_is_not_dropped_for_another_number(void)
{
        static const char *const names[] = {"data"};
        struct world world;

        world_new(&world);
        fake_kernel.add_error = -ETIMEDOUT;
        world_put_loop(&world, "data", ",\"id\":3");
        world_settle(&world, 0);
        fake_worker_open(fake_worker("data"), "file:1");
        world_settle(&world, 5);
        CHECK_INT(world_record(&world, "data")->number, 3);
        world_put_loop(&world, "data", ",\"id\":4");
        fake_kernel.add_error = 0;
        world_churn(&world, names, 1, "file:1");
        CHECK_INT(world_record(&world, "data")->number, 3);
        CHECK(!fake_disks[4].exists);
        fake_disks[3] = (struct kernel_disk){
                .exists = true,
                .cookie = device_cookie(world_record(&world, "data")->uid, 1),
                .flags = WORLD_RECOVERS,
                .holder = NO_PROCESS,
        };
        world_churn(&world, names, 1, "file:1");
        CHECK(!fake_disks[3].exists);
        world_free(&world);
}

/* A disk that was there before this ublkd may be live, and in use. */
static void nothing_is_reported_of_a_disk_before_the_kernel_answers(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        world_stop_reconciler(&world);
        fake_adopt_error = 0;
        fake_kernel.get_info_error = -EIO;
        world_start_reconciler(&world);
        fake_adopt_error = -ENOENT;
        world_settle(&world, 5);
        fake_worker_greet(fake_worker("data"), world_record(&world, "data")->epoch, 0);
        world_settle(&world, 5);
        CHECK_INT(world_phase(&world, "data"), PHASE_UNKNOWN);
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_CONTROL_PLANE);
        fake_kernel.get_info_error = 0;
        for (unsigned i = 0; i < 100 && world_phase(&world, "data") != PHASE_LIVE; i++)
                world_settle(&world, 20);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        fake_kernel.get_info_error = -EIO; /* ublkd knows what it saw before */
        world_put_loop(&world, "data", ",\"labels\":{\"a\":\"b\"}");
        world_settle(&world, 5);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        world_free(&world);
}

static void what_the_kernel_leaves_out_is_not_asked_for_again(void)
{
        static const char *const names[] = {"data"};
        struct world world;

        world_new(&world);
        fake_kernel.dropped_flags = FEATURE_RECOVERY;
        world_put_loop(&world, "data", "");
        world_settle(&world, 0);
        world_churn(&world, names, 1, "file:1");
        CHECK_INT(fake_kernel.adds, 1);
        CHECK_INT(world_phase(&world, "data"), PHASE_FAILED);
        CHECK(!fake_disks[0].exists && !fake_worker("data"));
        fake_kernel.dropped_flags = 0;
        world_put_loop(&world, "data", ",\"queueDepth\":3"); /* the user changes the spec */
        world_settle(&world, 0);
        world_churn(&world, names, 1, "file:1");
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        world_free(&world);
}

/* The worker grows first, then the disk. ublkd reports a refusal of the worker, and asks again. */
static void a_disk_grows_after_its_worker(void)
{
        struct world world;

        world_new(&world);
        world.host.features = WORLD_GROWS;
        world_put_size(&world, "data", 1024, 0);
        world_bring_up(&world, "data", "file:1");
        world_put_size(&world, "data", 2048, 0);
        world_wait_growth_asked(&world, "data");
        CHECK_INT(world_record(&world, "data")->epoch, 1);
        CHECK_INT(fake_worker("data")->asked, 2 << 20);
        CHECK_INT(fake_disks[0].size, 1 << 20);
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_GROWING);
        CHECK(!world_record(&world, "data")->status.converged);
        fake_worker_grow(fake_worker("data"), "It is too small.");
        world_wait_reason(&world, "data", REASON_CANNOT_GROW);
        CHECK_INT(fake_disks[0].size, 1 << 20);
        CHECK(strstr(world_record(&world, "data")->status.message, "1MiB"));
        CHECK(strstr(world_record(&world, "data")->status.message, "2MiB"));
        CHECK(!strstr(
                world_record(&world, "data")->status.message, "resize")); /* it may have grown already */
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        world_wait_growth_asked(&world, "data");
        fake_worker_grow(fake_worker("data"), NULL);
        world_wait_reason(&world, "data", REASON_LIVE);
        CHECK_INT(fake_disks[0].size, 2 << 20);
        CHECK_INT(world_record(&world, "data")->status.size, 2 << 20);
        CHECK(world_record(&world, "data")->status.converged);
        CHECK_INT(fake_kills, 0);
        world_free(&world);
}

/* A process opens the disk after the question whether it is in use, before the disk is stopped. */
static void a_disk_that_was_opened_since_stays_until_it_is_closed(void)
{
        struct world world;

        for (unsigned force = 0; force < 2; force++) {
                world_new(&world);
                world.host.features = WORLD_TRIES_TO_STOP;
                world_put_loop(&world, "data", "");
                world_bring_up(&world, "data", "file:1");
                fake_disks[0].flags |= FEATURE_TRY_STOP; /* the driver adds it by itself */
                fake_disks[0].openers = 1;
                CHECK_INT(device_store_request_delete(world.store, "data", false), 0);
                world_wait_reason(&world, "data", REASON_IN_USE);
                world_wait_value(&world, "data", "process 7 (dd)");
                CHECK_INT(fake_disks[0].state, KERNEL_STATE_LIVE);
                CHECK_INT(fake_kills, 0);
                if (force)
                        CHECK_INT(device_store_request_delete(world.store, "data", true), 0);
                else
                        fake_disks[0].openers = 0;
                if (force) {
                        world_wait_reason(&world, "data", REASON_STILL_HELD);
                        world_wait_value(&world, "data", "process 7 (dd)");
                        fake_disks[0].exists = false;
                }
                world_wait_gone(&world, "data");
                CHECK(!fake_disks[0].exists);
                world_free(&world);
        }
}

/* Without TRY_STOP_DEV, ublkd asks the kernel by an exclusive open. If it cannot ask, however often it tries,
 * it assumes an opener: it does not kill the worker and stop the disk. */
static void a_disk_that_may_be_mounted_is_stopped_by_force_only(void)
{
        enum { ROUNDS = 2 * ATTEMPT_TRIES };
        static const int errors[] = {-EBUSY, -ETIME};
        static const char *const values[] = {"process 7 (dd)", "/dev/ublkb0"};
        struct world world;

        for (unsigned i = 0; i < 2 * ARRAY_SIZE(errors); i++) {
                bool force = i % 2;

                world_new(&world);
                world_put_loop(&world, "data", "");
                world_bring_up(&world, "data", "file:1");
                fake_kernel.hold_error = errors[i / 2];
                fake_disks[0].openers = i / 2 == 0;
                CHECK_INT(device_store_request_delete(world.store, "data", false), 0);
                world_wait_reason(&world, "data", REASON_IN_USE);
                world_wait_value(&world, "data", values[i / 2]);
                for (unsigned asked = fake_kernel.holds; fake_kernel.holds < asked + ROUNDS;)
                        world_settle(&world, 5);
                CHECK_INT(fake_disks[0].state, KERNEL_STATE_LIVE);
                CHECK_INT(fake_kills, 0);
                fake_disks[0].openers = 0;
                if (force)
                        CHECK_INT(device_store_request_delete(world.store, "data", true), 0);
                else
                        fake_kernel.hold_error = 0;
                world_wait_gone(&world, "data");
                world_free(&world);
        }
}

/* ublkd asks before every removal, but not about a disk without a worker, where the open could wait. */
static void every_removal_of_a_disk_asks_the_kernel(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        fake_kernel.hold_error = -EBUSY;
        fake_disks[0].openers = 1;
        world_put_loop(&world, "data", ",\"enabled\":false");
        world_wait_reason(&world, "data", REASON_IN_USE);
        CHECK_INT(fake_disks[0].state, KERNEL_STATE_LIVE);
        world_put_loop(&world, "data", "");
        world_wait_reason(&world, "data", REASON_LIVE);
        world_put_loop(&world, "data", ",\"blockSize\":4096");
        world_wait_reason(&world, "data", REASON_IN_USE);
        CHECK_INT(fake_disks[0].state, KERNEL_STATE_LIVE);
        CHECK(fake_kernel.holds >= 2);
        fake_disks[0].openers = 0;
        CHECK_INT(device_store_request_delete(world.store, "data", true), 0);
        world_wait_gone(&world, "data");
        world_free(&world);

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        fake_kernel.hold_error = -EBUSY;
        fake_worker_die(fake_worker("data"));
        CHECK_INT(device_store_request_delete(world.store, "data", false), 0);
        world_wait_gone(&world, "data");
        CHECK_INT(fake_kernel.holds, 0);
        world_free(&world);
}

static void a_disk_that_is_gone_is_not_in_use(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        fake_kernel.hold_error = -EBUSY;
        fake_disks[0].openers = 1;
        world_put_loop(&world, "data", ",\"enabled\":false");
        world_wait_reason(&world, "data", REASON_IN_USE);
        fake_kernel.hold_error = 0;
        fake_disks[0].openers = 0;
        world_wait_reason(&world, "data", REASON_DISABLED);
        CHECK(!fake_disks[0].exists);
        world_free(&world);
}

/* The last opener closes the disk: the DEL_DEV of before takes effect now. */
static void a_disk_that_is_removed_before_it_is_deleted(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        fake_kernel.vanishes = true;
        world_put_loop(&world, "data", ",\"enabled\":false");
        world_wait_reason(&world, "data", REASON_DISABLED);
        CHECK_INT(world_count_events(&world, REASON_CONTROL_PLANE), 0);
        fake_kernel.vanishes = false;
        world_free(&world);
}

/* The search for openers may end after the removal. */
static void a_disk_that_is_removed_during_the_search_of_its_openers(void)
{
        struct world world;

        for (unsigned end = 0; end < 2; end++) {
                world_new(&world);
                world.host.features = WORLD_TRIES_TO_STOP;
                world_put_loop(&world, "data", "");
                world_bring_up(&world, "data", "file:1");
                fake_disks[0].flags |= FEATURE_TRY_STOP;
                fake_disks[0].openers = 1;
                fake_kernel.searches_stop = true;
                CHECK_INT(device_store_request_delete(world.store, "data", false), 0);
                while (world_searches() == 0)
                        CHECK(sd_event_run(world.event, 0) >= 0 && (fake_ctl_answer() || true));
                fake_disks[0].openers = 0;
                if (end == 0) {
                        world_continue_search();
                        world_wait_gone(&world, "data");
                } else {
                        world_stop_reconciler(&world);
                }
                world_settle(&world, 20);
                world_free(&world);
        }
}

/* The openers may change during the wait, and the search may fail. */
static void users_are_looked_for_again(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        fake_disks[0].openers = 1;
        *fake_kernel.user = '\0';
        CHECK_INT(device_store_request_delete(world.store, "data", true), 0);
        world_wait_reason(&world, "data", REASON_STILL_HELD);
        strcpy(fake_kernel.user, "process 4211 (fio)");
        world_wait_value(&world, "data", "process 4211 (fio)");
        CHECK_INT(world_searches(), 2);
        fake_disks[0].exists = false;
        world_wait_gone(&world, "data");
        world_free(&world);
}

/* A wait that ends within moments is not reported. */
static void a_disk_that_lingers_for_a_moment_is_not_held(void)
{
        struct world world;
        int64_t began;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        fake_disks[0].openers = 1;
        began = clock_msec(CLOCK_MONOTONIC);
        CHECK_INT(device_store_request_delete(world.store, "data", true), 0);
        world_settle(&world, 100);
        if (clock_msec(CLOCK_MONOTONIC) - began < 1000) { /* otherwise this process was stopped for longer */
                CHECK_INT(world_record(&world, "data")->status.reason, REASON_DELETING);
                CHECK_INT(world_searches(), 0);
        }
        fake_disks[0].exists = false;
        world_wait_gone(&world, "data");
        world_free(&world);
}

static void a_record_that_could_not_be_erased_is_erased_later(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        world.disk.erase_error = -ENOSPC;
        CHECK_INT(device_store_request_delete(world.store, "data", false), 0);
        world_settle(&world, 5);
        CHECK(world_record(&world, "data"));
        world.disk.erase_error = 0;
        world_wait_gone(&world, "data");
        world_free(&world);
}

/* Report neither Live for a spec that is not served, nor the old spec's reason for the new one. */
static void a_result_of_the_old_spec_is_not_reported_for_the_new_one(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        fake_kernel.get_info_error = -ETIMEDOUT;
        world_put_loop(&world, "data", ",\"blockSize\":4096");
        world_settle(&world, 5);
        CHECK(world_record(&world, "data")->status.observed_generation < 2
                || world_phase(&world, "data") != PHASE_LIVE);
        world_free(&world);
}

/* Another program may get the number next, and udev would set up its disk like ours. */
static void the_file_for_udev_is_removed_with_the_disk(void)
{
        struct world world;
        char path[96];

        world_new(&world);
        snprintf(path, sizeof(path), "%s/disks/ublkb0", world.path);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(access(path, F_OK), 0);
        fake_disks[0].exists = false; /* another program deleted it */
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 5);
        CHECK(access(path, F_OK) < 0);
        world_free(&world);
}

int main(void)
{
        many_devices_that_choose_a_number_at_once();
        what_never_had_a_driver_is_dropped_without_one();
        a_stranger_that_is_faster_gets_another_number();
        a_number_that_is_being_released_is_waited_for();
        a_number_that_is_not_released_is_reported();
        a_foreign_number_is_reported_all_the_time();
        a_number_that_is_being_released_is_not_foreign();
        a_failed_question_to_the_kernel_is_reported_during_the_release();
        a_late_disk_is_not_dropped_for_another_number();
        nothing_is_reported_of_a_disk_before_the_kernel_answers();
        what_the_kernel_leaves_out_is_not_asked_for_again();
        a_disk_grows_after_its_worker();
        a_disk_that_was_opened_since_stays_until_it_is_closed();
        a_disk_that_may_be_mounted_is_stopped_by_force_only();
        every_removal_of_a_disk_asks_the_kernel();
        a_disk_that_is_gone_is_not_in_use();
        a_disk_that_is_removed_before_it_is_deleted();
        a_disk_that_is_removed_during_the_search_of_its_openers();
        users_are_looked_for_again();
        a_disk_that_lingers_for_a_moment_is_not_held();
        a_record_that_could_not_be_erased_is_erased_later();
        a_result_of_the_old_spec_is_not_reported_for_the_new_one();
        the_file_for_udev_is_removed_with_the_disk();
        return check_report();
}
