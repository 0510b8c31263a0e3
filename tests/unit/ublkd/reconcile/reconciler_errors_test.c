/* SPDX-License-Identifier: MIT */
/* Requests that failed: an event, a condition and the status, in bounded number, also for the next supervisor. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"
#include "ublkd/base/clock.h"
#include "ublkd/proto/region_errors.h"
#include "ublkd/proto/region_faults.h"

#include <errno.h>
#include <string.h>

/* The device is live, and *ret is its region as its workers see it. */
static void bring_up(struct world *world, struct region_control **ret)
{
        world_new(world);
        *ret = world_bring_up_with_region(world, "");
}

static void take_a_turn(struct world *world)
{
        (void)device_store_request_recover(world->store, "data"); /* a turn, as after NEWS */
        world_settle(world, 20);
}

static const struct device_status *status(const struct world *world)
{
        return &world_record(world, "data")->status;
}

static void the_first_error_is_an_event_a_condition_and_in_the_status(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        CHECK_INT(status(&world)->conditions.of[CONDITION_ERROR_FREE].status, CONDITION_ABSENT);
        (void)region_error_note(control, STATS_READ, EIO, 8192, 4096);
        take_a_turn(&world);
        CHECK_INT(world_count_events(&world, REASON_READ_FAILED), 1);
        CHECK_INT(status(&world)->conditions.of[CONDITION_ERROR_FREE].status, CONDITION_FALSE);
        CHECK_INT(status(&world)->conditions.of[CONDITION_ERROR_FREE].reason, REASON_READ_FAILED);
        CHECK_INT(status(&world)->errors.of[STATS_READ].count, 1);
        CHECK_INT(status(&world)->errors.of[STATS_READ].error, EIO);
        CHECK_INT(status(&world)->errors.of[STATS_READ].offset, 8192);
        CHECK_INT(status(&world)->phase, PHASE_LIVE);
        world_free(&world);
}

/* What follows is counted in the status at once, and reported by one event later. */
static void a_flood_is_one_event(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        for (unsigned i = 1; i <= 50; i++) {
                for (unsigned k = 0; k < 100; k++)
                        (void)region_error_note(control, STATS_WRITE, ENOSPC, 0, 512);
                take_a_turn(&world);
                CHECK_INT(status(&world)->errors.of[STATS_WRITE].count, 100 * i);
        }
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 1);
        world_free(&world);
}

/* Discards that fail, which is harmless, do not delay the news of the first write. */
static void the_first_error_of_each_operation_is_an_event_at_once(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        (void)region_error_note(control, STATS_DISCARD, EIO, 0, 4096);
        take_a_turn(&world);
        CHECK_INT(world_count_events(&world, REASON_DISCARD_FAILED), 1);
        (void)region_error_note(control, STATS_DISCARD, EIO, 0, 4096);
        (void)region_error_note(control, STATS_WRITE, EIO, 0, 512);
        take_a_turn(&world);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 1);
        CHECK_INT(world_count_events(&world, REASON_DISCARD_FAILED), 1);
        world_free(&world);
}

/* The status keeps the errors; the conditions are those of a disk. */
static void the_conditions_end_with_the_disk_of_a_disabled_device(void)
{
        static const char *const names[] = {"data"};
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        (void)region_error_note(control, STATS_WRITE, ENOSPC, 0, 512);
        control->space.full_since = clock_usec(CLOCK_REALTIME);
        take_a_turn(&world);
        CHECK_INT(status(&world)->conditions.of[CONDITION_SPACE].reason, REASON_STORE_FULL);
        CHECK_INT(status(&world)->conditions.of[CONDITION_ERROR_FREE].reason, REASON_WRITE_FAILED);
        world_put_loop(&world, "data", ",\"enabled\":false");
        world_settle(&world, 20);
        world_churn(&world, names, 1, "file:1");
        CHECK_INT(status(&world)->phase, PHASE_DISABLED);
        CHECK_INT(status(&world)->conditions.of[CONDITION_SPACE].status, CONDITION_ABSENT);
        CHECK_INT(status(&world)->conditions.of[CONDITION_ERROR_FREE].status, CONDITION_ABSENT);
        CHECK_INT(status(&world)->errors.of[STATS_WRITE].count, 1);
        world_free(&world);
}

/* While no ublkd runs, `requests` more fail. */
static void restart_ublkd(struct world *world, struct region_control *control, unsigned requests)
{
        for (unsigned i = 0; i < requests; i++)
                (void)region_error_note(control, STATS_WRITE, EIO, 0, 512);
        world_restart_with_workers(world);
        fake_worker_greet(fake_worker("data"), world_record(world, "data")->epoch, 0);
        world_settle(world, 20);
        CHECK_INT(status(world)->phase, PHASE_LIVE);
}

static void the_next_supervisor_reports_only_what_is_new(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        (void)region_error_note(control, STATS_WRITE, EIO, 0, 512);
        take_a_turn(&world);
        restart_ublkd(&world, control, 0);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 1);
        CHECK_INT(status(&world)->errors.of[STATS_WRITE].count, 1);
        restart_ublkd(&world, control, 3);
        CHECK_INT(status(&world)->errors.of[STATS_WRITE].count, 4);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 2);
        world_free(&world);
}

static void bring_up_with_database(struct world *world, struct region_control **ret)
{
        world_new_with_database(world);
        *ret = world_bring_up_with_region(world, "");
}

static void kill_ublkd(struct world *world)
{
        world_kill_with_workers(world);
        fake_worker_greet(fake_worker("data"), world_record(world, "data")->epoch, 0);
        world_settle(world, 20);
        CHECK_INT(status(world)->phase, PHASE_LIVE);
}

static void an_event_that_a_kill_has_lost_is_reported_again(void)
{
        struct region_control *control;
        struct world world;

        bring_up_with_database(&world, &control);
        (void)region_error_note(control, STATS_WRITE, EIO, 0, 512);
        (void)region_error_note(control, STATS_READ, EIO, 0, 512);
        take_a_turn(&world);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 1);
        kill_ublkd(&world);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 1);
        CHECK_INT(world_count_events(&world, REASON_READ_FAILED), 1);
        world_free(&world);
}

static void an_event_in_the_database_is_not_reported_again(void)
{
        struct region_control *control;
        struct world world;

        bring_up_with_database(&world, &control);
        (void)region_error_note(control, STATS_WRITE, EIO, 0, 512);
        take_a_turn(&world);
        CHECK_INT(device_store_save_events(world.store), 0);
        kill_ublkd(&world); /* at once: no turn has seen that it is written */
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 1);
        kill_ublkd(&world);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 1);
        world_free(&world);
}

/* Both reasons are WriteFailed: the second event continues the first one, and is lost. */
static void a_lost_repetition_is_reported_again(void)
{
        struct region_control *control;
        struct world world;

        bring_up_with_database(&world, &control);
        (void)region_error_note(control, STATS_WRITE, EIO, 0, 512);
        take_a_turn(&world);
        CHECK_INT(device_store_save_events(world.store), 0);
        (void)region_error_note(control, STATS_WRITE_ZEROES, EIO, 0, 512);
        take_a_turn(&world);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 2);
        kill_ublkd(&world);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 2);
        world_free(&world);
}

static void lost_events_of_a_fault_and_of_the_room_are_reported_again(void)
{
        struct region_control *control;
        struct world world;

        bring_up_with_database(&world, &control);
        (void)region_fault_latch(control, REGION_FAULT_FLUSH, STATS_FLUSH, EIO, 0);
        control->space.full_since = clock_usec(CLOCK_REALTIME);
        take_a_turn(&world);
        kill_ublkd(&world);
        CHECK_INT(world_count_events(&world, REASON_FLUSH_FAILED), 1);
        CHECK_INT(world_count_events(&world, REASON_STORE_FULL), 1);
        CHECK_INT(device_store_save_events(world.store), 0);
        control->space.full_since = 0;
        take_a_turn(&world);
        CHECK_INT(world_count_events(&world, REASON_STORE_HAS_ROOM), 1);
        kill_ublkd(&world);
        CHECK_INT(world_count_events(&world, REASON_FLUSH_FAILED), 1);
        CHECK_INT(world_count_events(&world, REASON_STORE_FULL), 1);
        CHECK_INT(world_count_events(&world, REASON_STORE_HAS_ROOM), 1);
        world_free(&world);
}

/* The write that failed is the one that StoreFull is about; one that fails for another cause is an event. */
static void a_write_without_room_is_one_event(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        (void)region_error_note(control, STATS_WRITE, ENOSPC, 8192, 4096);
        control->missed = (struct region_missed){
                .since = 7, .offset = 8192, .length = 4096, .op = STATS_WRITE, .error = ENOSPC};
        control->space.full_since = 7;
        take_a_turn(&world);
        CHECK_INT(world_count_events(&world, REASON_STORE_FULL), 1);
        CHECK(strstr(world_last_message(&world, REASON_STORE_FULL), "4096 bytes at byte 8192"));
        CHECK(strstr(world_last_message(&world, REASON_STORE_FULL), "ENOSPC"));
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 0);
        CHECK_INT(status(&world)->conditions.of[CONDITION_ERROR_FREE].reason, REASON_WRITE_FAILED);
        CHECK_INT(status(&world)->errors.of[STATS_WRITE].count, 1);
        restart_ublkd(&world, control, 0);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 0);
        (void)region_error_note(control, STATS_WRITE, EIO, 0, 512);
        (void)region_error_note(control, STATS_WRITE, ENOSPC, 0, 512);
        take_a_turn(&world);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 1);
        control->space.full_since = 0;
        take_a_turn(&world);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 1);
        CHECK_INT(world_count_events(&world, REASON_STORE_FULL), 1);
        world_free(&world);
}

/* FlushFailed says it. */
static void a_lost_flush_has_no_second_event(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        (void)region_fault_latch(control, REGION_FAULT_FLUSH, STATS_FLUSH, EIO, 0);
        (void)region_error_note(control, STATS_FLUSH, EIO, 0, 0);
        take_a_turn(&world);
        CHECK_INT(world_count_events(&world, REASON_FLUSH_FAILED), 1);
        CHECK_INT(world_count_events(&world, REASON_REQUEST_FAILED), 0);
        CHECK_INT(status(&world)->errors.of[STATS_FLUSH].count, 1);
        world_free(&world);
}

static void fail_writes(struct region_control *control, unsigned requests, int error)
{
        for (unsigned i = 0; i < requests; i++)
                (void)region_error_note(control, STATS_WRITE, error, 0, 512);
}

static void save_events(struct world *world)
{
        CHECK_INT(device_store_save_events(world->store), 0);
}

/* What fails after the last look, before there is room again, belongs to StoreFull as well. */
static void the_end_of_an_episode_is_one_event(void)
{
        struct region_control *control;
        struct world world;

        bring_up_with_database(&world, &control);
        fail_writes(control, 1, ENOSPC);
        control->space.full_since = 7;
        take_a_turn(&world);
        save_events(&world);
        take_a_turn(&world);
        fail_writes(control, 3, ENOSPC);
        control->space.full_since = 0;
        take_a_turn(&world);
        CHECK_INT(world_count_events(&world, REASON_STORE_FULL), 1);
        CHECK_INT(world_count_events(&world, REASON_STORE_HAS_ROOM), 1);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 0);
        kill_ublkd(&world);
        CHECK_INT(world_count_events(&world, REASON_STORE_HAS_ROOM), 1);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 0);
        fail_writes(control, 1, ENOSPC); /* of no episode that was reported */
        take_a_turn(&world);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 1);
        world_free(&world);
}

/* Nothing else reports those writes then. */
static void a_write_whose_explanation_a_kill_has_lost_is_reported(void)
{
        struct region_control *control;
        struct world world;

        bring_up_with_database(&world, &control);
        fail_writes(control, 1, ENOSPC);
        control->space.full_since = 7;
        take_a_turn(&world);
        CHECK_INT(world_count_events(&world, REASON_STORE_FULL), 1);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 0);
        control->space.full_since = 0; /* while no ublkd runs */
        kill_ublkd(&world);
        CHECK_INT(world_count_events(&world, REASON_STORE_FULL), 0);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 1);
        world_free(&world);
}

static void a_flush_whose_explanation_a_kill_has_lost_is_reported(void)
{
        struct region_control *control;
        struct world world;

        bring_up_with_database(&world, &control);
        (void)region_fault_latch(control, REGION_FAULT_FLUSH, STATS_FLUSH, EIO, 0);
        (void)region_error_note(control, STATS_FLUSH, EIO, 0, 0);
        take_a_turn(&world);
        CHECK_INT(world_count_events(&world, REASON_FLUSH_FAILED), 1);
        control->faults[REGION_FAULT_FLUSH].word = 0;
        kill_ublkd(&world);
        CHECK_INT(world_count_events(&world, REASON_FLUSH_FAILED), 0);
        CHECK_INT(world_count_events(&world, REASON_REQUEST_FAILED), 1);
        world_free(&world);
}

/* Killed at once: no turn has seen that StoreFull is written. */
static void a_write_whose_explanation_is_in_the_database_has_no_event(void)
{
        struct region_control *control;
        struct world world;

        bring_up_with_database(&world, &control);
        fail_writes(control, 1, ENOSPC);
        control->space.full_since = 7;
        take_a_turn(&world);
        save_events(&world);
        control->space.full_since = 0;
        kill_ublkd(&world);
        CHECK_INT(world_count_events(&world, REASON_STORE_FULL), 1);
        CHECK_INT(world_count_events(&world, REASON_STORE_HAS_ROOM), 1);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 0);
        CHECK_INT(control->errors.newest[STATS_WRITE].reported, 1);
        world_free(&world);
}

/* The event of the first write waits while StoreFull explains ten more. */
static void what_was_explained_stays_reported(void)
{
        struct region_control *control;
        struct world world;

        bring_up_with_database(&world, &control);
        fail_writes(control, 1, EIO);
        take_a_turn(&world);
        fail_writes(control, 10, ENOSPC);
        control->space.full_since = 7;
        take_a_turn(&world);
        save_events(&world);
        control->space.full_since = 0;
        take_a_turn(&world);
        CHECK_INT(control->errors.newest[STATS_WRITE].reported, 11);
        kill_ublkd(&world);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 1);
        CHECK_INT(control->errors.newest[STATS_WRITE].reported, 11);
        world_free(&world);
}

/* StoreFull is in the database, the event of a write that failed before the explained one is not. */
static void an_explained_write_does_not_hide_a_lost_event(void)
{
        struct region_control *control;
        struct world world;

        bring_up_with_database(&world, &control);
        control->space.full_since = 7;
        take_a_turn(&world);
        save_events(&world);
        fail_writes(control, 1, EIO);
        take_a_turn(&world);
        fail_writes(control, 1, ENOSPC);
        take_a_turn(&world);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 1);
        kill_ublkd(&world);
        CHECK_INT(world_count_events(&world, REASON_STORE_FULL), 1);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 1);
        world_free(&world);
}

/* It knows nothing of reports, and has reported nine more before the upgrade. */
static void what_an_older_ublkd_has_reported_is_not_reported_again(void)
{
        struct region_control *control;
        struct world world;

        bring_up_with_database(&world, &control);
        fail_writes(control, 1, EIO);
        take_a_turn(&world);
        save_events(&world);
        fail_writes(control, 9, EIO);
        control->errors.newest[STATS_WRITE].reported = 10;
        kill_ublkd(&world);
        CHECK_INT(world_count_events(&world, REASON_WRITE_FAILED), 1);
        CHECK_INT(control->errors.newest[STATS_WRITE].reported, 10);
        world_free(&world);
}

/* The older ublkd has reported a later episode. */
static void an_episode_that_an_older_ublkd_has_reported_is_not_reported_again(void)
{
        struct region_control *control;
        struct world world;

        bring_up_with_database(&world, &control);
        control->space.full_since = 7;
        take_a_turn(&world);
        save_events(&world);
        control->space.full_since = control->space.reported = 9;
        kill_ublkd(&world);
        CHECK_INT(world_count_events(&world, REASON_STORE_FULL), 1);
        CHECK_INT(control->space.reported, 9);
        control->space.full_since = 0;
        take_a_turn(&world);
        CHECK_INT(world_count_events(&world, REASON_STORE_HAS_ROOM), 1);
        world_free(&world);
}

/* As after an error when the clock was wrong. */
static void a_time_in_the_future_does_not_change_the_status_again(void)
{
        struct region_control *control;
        struct world world;
        uint64_t at;

        bring_up(&world, &control);
        (void)region_error_note(control, STATS_READ, EIO, 8192, 4096);
        control->errors.newest[STATS_READ].at += 3600 * USEC_PER_SEC;
        take_a_turn(&world);
        at = status(&world)->errors.of[STATS_READ].at;
        CHECK(at > 0 && at <= clock_usec(CLOCK_REALTIME));
        take_a_turn(&world);
        CHECK_INT(status(&world)->errors.of[STATS_READ].at, at);
        world_free(&world);
}

/* A worker that was taken over, or one of another version. */
static void nonsense_in_the_region_is_bounded(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        memset(&control->errors, 0xff, sizeof(control->errors));
        take_a_turn(&world);
        memset(&control->errors, 0x7f, sizeof(control->errors));
        take_a_turn(&world);
        CHECK_INT(status(&world)->phase, PHASE_LIVE);
        CHECK(world_count_events(&world, REASON_WRITE_FAILED) <= 2); /* writes, and writes of zeroes */
        world_free(&world);
}

static void report_full_since(uint64_t since)
{
        struct region_control *control;
        struct world world;

        bring_up_with_database(&world, &control);
        control->space.full_since = since;
        for (unsigned i = 0; i < 3; i++) {
                take_a_turn(&world);
                CHECK_INT(device_store_save_events(world.store), 0);
        }
        CHECK_INT(world_count_events(&world, REASON_STORE_FULL), 1);
        world_free(&world);
}

static void a_nonsensical_time_without_room_is_one_event(void)
{
        report_full_since(UINT64_C(1) << 63);
        report_full_since(UINT64_MAX);
}

int main(void)
{
        the_first_error_is_an_event_a_condition_and_in_the_status();
        a_flood_is_one_event();
        the_first_error_of_each_operation_is_an_event_at_once();
        the_conditions_end_with_the_disk_of_a_disabled_device();
        the_next_supervisor_reports_only_what_is_new();
        an_event_that_a_kill_has_lost_is_reported_again();
        an_event_in_the_database_is_not_reported_again();
        a_lost_repetition_is_reported_again();
        lost_events_of_a_fault_and_of_the_room_are_reported_again();
        a_write_without_room_is_one_event();
        a_lost_flush_has_no_second_event();
        the_end_of_an_episode_is_one_event();
        a_write_whose_explanation_a_kill_has_lost_is_reported();
        a_flush_whose_explanation_a_kill_has_lost_is_reported();
        a_write_whose_explanation_is_in_the_database_has_no_event();
        what_was_explained_stays_reported();
        an_explained_write_does_not_hide_a_lost_event();
        what_an_older_ublkd_has_reported_is_not_reported_again();
        an_episode_that_an_older_ublkd_has_reported_is_not_reported_again();
        a_time_in_the_future_does_not_change_the_status_again();
        nonsense_in_the_region_is_bounded();
        a_nonsensical_time_without_room_is_one_event();
        return check_report();
}
