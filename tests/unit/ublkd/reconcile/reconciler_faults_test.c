/* SPDX-License-Identifier: MIT */
/* Faults that lose acknowledged data: reported once, and cleared with the next worker if they were
 * accepted. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"
#include "ublkd/proto/region_faults.h"
#include "ublkd/reconcile/runtime_remade.h"

#include <string.h>
#include <unistd.h>

static const char *const names[] = {"data", "(preflight)"};

/* The device is live, and *ret is its region as its workers see it. */
static void bring_up_as(struct world *world, const char *spec, struct region_control **ret)
{
        world_new(world);
        world->host.features = WORLD_QUIESCES;
        *ret = world_bring_up_with_region(world, spec);
}

static void bring_up(struct world *world, struct region_control **ret)
{
        bring_up_as(world, "", ret);
}

static void fail_a_flush(struct world *world, struct region_control *control)
{
        CHECK(region_fault_latch(control, REGION_FAULT_FLUSH, STATS_FLUSH, 5, 0));
        (void)device_store_request_recover(world->store, "data"); /* a turn, as after NEWS */
        world_settle(world, 20);
}

static const struct device_condition *durable(const struct world *world)
{
        return &world_record(world, "data")->status.conditions.of[CONDITION_DURABLE];
}

static void shown_once_also_by_the_next_supervisor(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        CHECK_INT(durable(&world)->status, CONDITION_ABSENT);
        fail_a_flush(&world, control);
        CHECK_INT(durable(&world)->status, CONDITION_FALSE);
        CHECK_INT(durable(&world)->reason, REASON_FLUSH_FAILED);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK_INT(world_count_events(&world, REASON_FLUSH_FAILED), 1);
        world_stop_reconciler(&world);
        world_start_reconciler(&world);
        world_settle(&world, 20);
        CHECK_INT(world_count_events(&world, REASON_FLUSH_FAILED), 1);
        world_free(&world);
}

/* A worker that was taken over writes whatever it likes into its region. */
static void one_event_for_a_worker_that_makes_up_faults(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        fail_a_flush(&world, control);
        CHECK_INT(world_count_events(&world, REASON_FLUSH_FAILED), 1);
        for (unsigned i = 0; i < 5; i++) {
                control->faults[REGION_FAULT_FLUSH].word = 0;
                fail_a_flush(&world, control); /* with the next number */
        }
        control->faults[REGION_FAULT_FLUSH].reported = 0;
        (void)device_store_request_recover(world.store, "data");
        world_settle(&world, 20);
        CHECK_INT(world_count_events(&world, REASON_FLUSH_FAILED), 1);
        CHECK_INT(durable(&world)->status, CONDITION_FALSE);
        world_free(&world);
}

/* What the administrator has accepted is over: the next fault is shown at once. */
static void an_event_for_a_fault_after_an_accepted_one(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        fail_a_flush(&world, control);
        CHECK_INT(device_store_request_restart(world.store, "data", true), 0);
        world_settle(&world, 20);
        world_churn(&world, names, 2, "file:1");
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK_INT(world_count_events(&world, REASON_FLUSH_FAILED), 1);
        fail_a_flush(&world, control);
        CHECK_INT(world_count_events(&world, REASON_FLUSH_FAILED), 2);
        world_free(&world);
}

static void kept_across_a_restart_that_accepts_nothing(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        fail_a_flush(&world, control);
        CHECK_INT(device_store_request_restart(world.store, "data", false), 0);
        world_settle(&world, 20);
        world_churn(&world, names, 2, "file:1");
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK(region_fault_is_latched(control, REGION_FAULT_FLUSH));
        CHECK_INT(durable(&world)->status, CONDITION_FALSE);
        world_free(&world);
}

static void cleared_with_the_worker_that_follows(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        fail_a_flush(&world, control);
        CHECK_INT(device_store_request_restart(world.store, "data", true), 0);
        CHECK(region_fault_is_latched(control, REGION_FAULT_FLUSH)); /* the old worker still serves */
        world_settle(&world, 20);
        world_churn(&world, names, 2, "file:1");
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK(!region_fault_is_latched(control, REGION_FAULT_FLUSH));
        CHECK_INT(durable(&world)->status, CONDITION_ABSENT);
        CHECK_INT(world_count_events(&world, REASON_WRITE_ERRORS_ACCEPTED), 1);
        world_free(&world);
}

/* It happened after the administrator had looked. */
static void not_a_fault_that_no_client_has_seen(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        CHECK_INT(device_store_request_restart(world.store, "data", true), 0);
        CHECK(region_fault_latch(control, REGION_FAULT_FLUSH, STATS_FLUSH, 5, 0));
        world_settle(&world, 20);
        world_churn(&world, names, 2, "file:1");
        CHECK(region_fault_is_latched(control, REGION_FAULT_FLUSH));
        CHECK_INT(durable(&world)->status, CONDITION_FALSE);
        world_free(&world);
}

static void not_by_a_restart_that_was_refused(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        fail_a_flush(&world, control);
        CHECK_INT(device_store_request_restart(world.store, "data", true), 0);
        world_settle(&world, 20);
        fake_worker_die(fake_worker("(preflight)"));
        world_settle(&world, 20);
        fake_worker_die(fake_worker("data")); /* and later its worker crashes */
        world_settle(&world, 20);
        world_churn(&world, names, 2, "file:1");
        CHECK(region_fault_is_latched(control, REGION_FAULT_FLUSH));
        world_free(&world);
}

/* The next ublkd accepts nothing for it either. */
static void not_by_a_restart_that_the_last_ublkd_refused(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        fail_a_flush(&world, control);
        CHECK_INT(device_store_request_restart(world.store, "data", true), 0);
        world_settle(&world, 20);
        fake_worker_die(fake_worker("(preflight)"));
        world_settle(&world, 20);
        world_restart_with_workers(&world);
        fake_worker_greet(fake_worker("data"), world_record(&world, "data")->epoch, 0);
        world_settle(&world, 20);
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 20);
        world_churn(&world, names, 2, "file:1");
        CHECK(region_fault_is_latched(control, REGION_FAULT_FLUSH));
        world_free(&world);
}

/* The region is removed with the runtime directory; the worker still fails flushes. */
static void kept_while_the_region_is_gone(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        fail_a_flush(&world, control);
        CHECK_INT(runtime_dir_remove_region(world.dir, world_record(&world, "data")->uid), 0);
        reconciler_runtime_remade(world.reconciler);
        world_settle(&world, 20);
        CHECK_INT(durable(&world)->status, CONDITION_FALSE);
        CHECK_INT(world_count_events(&world, REASON_FLUSH_FAILED), 1);
        world_free(&world);
}

static void remove_region(const struct world *world)
{
        CHECK_INT(runtime_dir_remove_region(world->dir, world_record(world, "data")->uid), 0);
}

/* Another program has overwritten it. */
static void damage_region(const struct world *world)
{
        _cleanup_close_ int fd = runtime_dir_open_region(world->dir, world_record(world, "data")->uid);
        static const char nonsense[4096] = "nonsense";

        CHECK_INT(pwrite(fd, nonsense, sizeof(nonsense), 0), sizeof(nonsense));
}

static struct fault_report fault_in_region(const struct world *world, enum region_fault fault)
{
        _cleanup_close_ int fd = runtime_dir_open_region(world->dir, world_record(world, "data")->uid);
        struct fault_report reports[_REGION_FAULT_MAX] = {};

        CHECK_INT(region_faults_read(fd, reports), 0);
        return reports[fault];
}

static struct fault_report flush_in_region(const struct world *world)
{
        return fault_in_region(world, REGION_FAULT_FLUSH);
}

/* Flushes go on failing, although no worker finds the region of the one before. */
static void in_the_region_of_the_next_worker(void (*lose)(const struct world *world))
{
        struct region_control *control;
        struct fault_report flush;
        struct world world;

        bring_up(&world, &control);
        fail_a_flush(&world, control);
        lose(&world);
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 20);
        flush = flush_in_region(&world);
        CHECK_INT(flush.number, 1);
        CHECK_INT(flush.error, 5);
        CHECK(flush.at > 0);
        world_churn(&world, names, 2, "file:1");
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK_INT(durable(&world)->status, CONDITION_FALSE);
        CHECK_INT(world_count_events(&world, REASON_FLUSH_FAILED), 1);
        CHECK_INT(device_store_request_restart(world.store, "data", true), 0);
        world_settle(&world, 20);
        world_churn(&world, names, 2, "file:1");
        CHECK_INT(flush_in_region(&world).number, 0);
        CHECK_INT(durable(&world)->status, CONDITION_ABSENT);
        world_free(&world);
}

/* ublkd is killed after it has made the region of the next worker. saved: the database has the event then. */
static void kill_after_carrying(bool saved)
{
        struct region_control *control;
        struct world world;

        world_new_with_database(&world);
        control = world_bring_up_with_region(&world, "");
        (void)region_fault_latch(control, REGION_FAULT_FLUSH, STATS_FLUSH, 5, 0);
        (void)device_store_request_recover(world.store, "data"); /* a turn, as after NEWS */
        world_settle(&world, 20);
        CHECK_INT(world_count_events(&world, REASON_FLUSH_FAILED), 1);
        remove_region(&world);
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 20);
        world_churn(&world, names, 2, "file:1");
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK_INT(flush_in_region(&world).number, 1);
        CHECK_INT(flush_in_region(&world).reported, 0);
        if (saved)
                CHECK_INT(device_store_save_events(world.store), 0);
        world_kill_with_workers(&world);
        fake_worker_greet(fake_worker("data"), world_record(&world, "data")->epoch, 0);
        world_settle(&world, 20);
        CHECK_INT(world_count_events(&world, REASON_FLUSH_FAILED), 1);
        CHECK_INT(flush_in_region(&world).reported, saved);
        world_free(&world);
}

/* An older ublkd, which knows nothing of reports, has reported the second fault. */
static void not_reported_again_after_a_downgrade(void)
{
        struct region_control *control;
        struct world world;

        world_new_with_database(&world);
        control = world_bring_up_with_region(&world, "");
        (void)region_fault_latch(control, REGION_FAULT_FLUSH, STATS_FLUSH, 5, 0);
        (void)device_store_request_recover(world.store, "data");
        world_settle(&world, 20);
        CHECK_INT(device_store_save_events(world.store), 0);
        control->faults[REGION_FAULT_FLUSH].word = 0;
        (void)region_fault_latch(control, REGION_FAULT_FLUSH, STATS_FLUSH, 5, 0);
        control->faults[REGION_FAULT_FLUSH].reported = 2;
        world_kill_with_workers(&world);
        fake_worker_greet(fake_worker("data"), world_record(&world, "data")->epoch, 0);
        world_settle(&world, 20);
        CHECK_INT(world_count_events(&world, REASON_FLUSH_FAILED), 1);
        CHECK_INT(flush_in_region(&world).reported, 2);
        world_free(&world);
}

/* The flush of a device has failed, and its region is gone when a restart accepts that. */
static void restart_without_region(struct world *world)
{
        struct region_control *control;

        bring_up(world, &control);
        fail_a_flush(world, control);
        remove_region(world);
        CHECK_INT(device_store_request_restart(world->store, "data", true), 0);
        world_settle(world, 20);
}

static void not_accepted_while_the_region_is_gone(void)
{
        struct world world;

        restart_without_region(&world);
        fake_worker_die(fake_worker("(preflight)")); /* the restart is refused */
        world_settle(&world, 20);
        fake_worker_die(fake_worker("data")); /* and later its worker crashes */
        world_settle(&world, 20);
        world_churn(&world, names, 2, "file:1");
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK_INT(flush_in_region(&world).number, 1);
        CHECK_INT(durable(&world)->status, CONDITION_FALSE);
        world_free(&world);
}

/* The restart itself starts the next worker. */
static void accepted_while_the_region_is_gone(void)
{
        struct world world;

        restart_without_region(&world);
        CHECK_INT(durable(&world)->status, CONDITION_FALSE); /* the old worker still serves */
        world_churn(&world, names, 2, "file:1");
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK_INT(durable(&world)->status, CONDITION_ABSENT);
        world_free(&world);
}

static void cleared_when_the_disk_was_disabled(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        fail_a_flush(&world, control);
        world_put_loop(&world, "data", ",\"enabled\":false");
        world_settle(&world, 20);
        world_churn(&world, names, 2, "file:1");
        CHECK_INT(world_phase(&world, "data"), PHASE_DISABLED);
        CHECK(!region_fault_is_latched(control, REGION_FAULT_FLUSH));
        world_free(&world);
}

/* They cannot be replayed. */
static void a_restart_fails_no_write_that_waits_for_room(void)
{
        struct region_control *control;
        struct world world;

        bring_up_as(&world, ",\"onFull\":\"wait\",\"recovery\":{\"onCrash\":\"queue\"}", &control);
        control->space.waiting = 1;
        CHECK_INT(device_store_request_restart(world.store, "data", false), 0);
        world_settle(&world, 20);
        CHECK(!fake_worker("(preflight)"));
        CHECK_INT(fake_kernel.quiesces, 0);
        CHECK_INT(control->space.on_full, REGION_ON_FULL_WAIT);
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_CANNOT_RESTART);
        control->space.waiting = 0;
        CHECK_INT(device_store_request_restart(world.store, "data", false), 0);
        world_settle(&world, 20);
        CHECK(fake_worker("(preflight)"));
        world_free(&world);
}

static void check_space(const struct world *world, const char *text, unsigned events)
{
        const struct device_condition *space =
                &world_record(world, "data")->status.conditions.of[CONDITION_SPACE];

        CHECK_INT(space->reason, REASON_STORE_FULL);
        CHECK(space->message && strstr(space->message, text));
        CHECK_INT(world_count_events(world, REASON_STORE_FULL), events);
}

static void take_a_turn(struct world *world)
{
        (void)device_store_request_recover(world->store, "data"); /* as after NEWS */
        world_settle(world, 20);
}

/* Return how many times the newest event with this reason stands for; 0: there is none. */
static uint64_t newest_count(const struct world *world, enum condition_reason reason)
{
        const struct event_log *log = device_store_events(world->store);

        for (size_t i = event_log_count(log); i-- > 0;)
                if (event_log_at(log, i)->reason == reason)
                        return event_log_at(log, i)->count;
        return 0;
}

/* The condition follows at once; an event shows the first write that waits, also that of the next change. */
static void on_full_changes_while_the_store_is_full(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        control->space.full_since = 1;
        take_a_turn(&world);
        check_space(&world, "onFull is \"error\"", 1);
        world_put_loop(&world, "data", ",\"onFull\":\"wait\"");
        world_settle(&world, 20);
        CHECK_INT(control->space.on_full, REGION_ON_FULL_WAIT);
        check_space(&world, "onFull is \"wait\"", 1);
        control->space.waiting = 1;
        take_a_turn(&world);
        check_space(&world, "onFull is \"wait\"", 2);
        CHECK_INT(newest_count(&world, REASON_STORE_FULL), 1); /* not a repetition of the first one */
        world_restart_with_workers(&world);
        fake_worker_greet(fake_worker("data"), world_record(&world, "data")->epoch, 0);
        world_settle(&world, 20);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        check_space(&world, "onFull is \"wait\"", 2);
        world_put_loop(&world, "data", "");
        world_settle(&world, 20);
        check_space(&world, "onFull is \"error\"", 2);
        control->space.waiting = 0;
        control->space.full_since = 0;
        take_a_turn(&world);
        CHECK_INT(world_count_events(&world, REASON_STORE_HAS_ROOM), 1);
        CHECK_INT(control->space.reported_waits, 0);
        world_free(&world);
}

static const struct device_condition *whole(const struct world *world)
{
        return &world_record(world, "data")->status.conditions.of[CONDITION_BACKING_WHOLE];
}

/* A worker that takes over has latched the cut before it refuses. */
static void a_cut_that_the_next_worker_finds_is_shown_at_once(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 20);
        CHECK_INT(whole(&world)->status, CONDITION_ABSENT);
        CHECK(region_fault_latch(control, REGION_FAULT_CUT, STATS_OTHER, 5, 4096));
        fake_worker_refuse(fake_worker("data"), "BackingTooSmall", "It offers 4KiB.");
        world_settle(&world, 20);
        CHECK_INT(whole(&world)->status, CONDITION_FALSE);
        CHECK_INT(whole(&world)->reason, REASON_BACKING_TRUNCATED);
        CHECK_INT(world_count_events(&world, REASON_BACKING_TRUNCATED), 1);
        world_free(&world);
}

/* A preflight worker has a region of its own, which goes with it. */
static struct region_control *region_of_preflight(const struct world *world)
{
        char uid[UID_TEXT_SIZE], *last = uid;
        _cleanup_close_ int fd = -1;
        void *base = NULL;

        memcpy(uid, world_record(world, "data")->uid, sizeof(uid));
        last += strlen(uid) - 1;
        *last = *last == '0' ? '1' : '0';
        fd = runtime_dir_ensure_region(world->dir, uid, &(struct device_region_key){.queues = 1});
        CHECK(fd >= 0);
        CHECK_INT(device_region_map(fd, 1, &base), 0);
        return device_region_control(base);
}

static void preflight_finds_a_truncated_store(struct world *world, bool found)
{
        struct region_control *control;

        CHECK_INT(device_store_request_restart(world->store, "data", false), 0);
        world_settle(world, 20);
        control = region_of_preflight(world);
        if (found)
                CHECK(region_fault_latch(control, REGION_FAULT_CUT, STATS_OTHER, 5, 4096));
        fake_worker_refuse(fake_worker("(preflight)"), "BackingTooSmall", "It offers 4KiB.");
        world_settle(world, 20);
        CHECK_INT(world_phase(world, "data"), PHASE_LIVE);
        CHECK_INT(world_record(world, "data")->status.reason, REASON_CANNOT_RESTART);
}

static void a_cut_that_a_preflight_finds_is_latched_for_the_worker_that_serves(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        preflight_finds_a_truncated_store(&world, false);
        CHECK(!region_fault_is_latched(control, REGION_FAULT_CUT));
        CHECK_INT(whole(&world)->status, CONDITION_ABSENT);
        preflight_finds_a_truncated_store(&world, true);
        CHECK(region_fault_is_latched(control, REGION_FAULT_CUT));
        CHECK_INT(control->faults[REGION_FAULT_CUT].detail, 4096);
        CHECK_INT(whole(&world)->reason, REASON_BACKING_TRUNCATED);
        preflight_finds_a_truncated_store(&world, true);
        CHECK_INT(world_count_events(&world, REASON_BACKING_TRUNCATED), 1);
        world_free(&world);
}

/* The serving worker has a region without a name: it is to latch the cut itself. */
static void a_cut_that_a_preflight_finds_without_a_region(void (*lose)(const struct world *world))
{
        struct region_control *control;
        struct fault_report cut;
        struct world world;

        bring_up(&world, &control);
        lose(&world);
        preflight_finds_a_truncated_store(&world, true);
        CHECK_INT(whole(&world)->reason, REASON_BACKING_TRUNCATED);
        CHECK_INT(fake_worker("data")->asked, 1 << 20);
        preflight_finds_a_truncated_store(&world, true);
        CHECK_INT(world_count_events(&world, REASON_BACKING_TRUNCATED), 1);
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 20);
        cut = fault_in_region(&world, REGION_FAULT_CUT);
        CHECK_INT(cut.number, 1);
        CHECK_INT(cut.error, 5);
        CHECK_INT(cut.detail, 4096);
        CHECK_INT(whole(&world)->reason, REASON_BACKING_TRUNCATED);
        CHECK_INT(world_count_events(&world, REASON_BACKING_TRUNCATED), 1);
        world_free(&world);
}

/* A ublkd that died has left it behind. */
static void a_cut_that_an_earlier_preflight_found_is_not_latched(void)
{
        struct region_control *control;
        struct world world;

        bring_up(&world, &control);
        CHECK(region_fault_latch(region_of_preflight(&world), REGION_FAULT_CUT, STATS_OTHER, 5, 4096));
        preflight_finds_a_truncated_store(&world, false);
        CHECK(!region_fault_is_latched(control, REGION_FAULT_CUT));
        CHECK_INT(whole(&world)->status, CONDITION_ABSENT);
        world_free(&world);
}

int main(void)
{
        a_cut_that_an_earlier_preflight_found_is_not_latched();
        a_cut_that_a_preflight_finds_without_a_region(remove_region);
        a_cut_that_a_preflight_finds_without_a_region(damage_region);
        a_cut_that_the_next_worker_finds_is_shown_at_once();
        a_cut_that_a_preflight_finds_is_latched_for_the_worker_that_serves();
        a_restart_fails_no_write_that_waits_for_room();
        on_full_changes_while_the_store_is_full();
        shown_once_also_by_the_next_supervisor();
        one_event_for_a_worker_that_makes_up_faults();
        an_event_for_a_fault_after_an_accepted_one();
        kept_across_a_restart_that_accepts_nothing();
        cleared_with_the_worker_that_follows();
        not_a_fault_that_no_client_has_seen();
        not_by_a_restart_that_was_refused();
        not_by_a_restart_that_the_last_ublkd_refused();
        kept_while_the_region_is_gone();
        kill_after_carrying(false);
        kill_after_carrying(true);
        not_reported_again_after_a_downgrade();
        in_the_region_of_the_next_worker(remove_region);
        in_the_region_of_the_next_worker(damage_region);
        accepted_while_the_region_is_gone();
        not_accepted_while_the_region_is_gone();
        cleared_when_the_disk_was_disabled();
        return check_report();
}
