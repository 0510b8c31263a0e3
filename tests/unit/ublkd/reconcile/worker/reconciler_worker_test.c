/* SPDX-License-Identifier: MIT */
/* Starting, replacing and reaping a worker: the reconciler over a fake kernel and fake workers. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"
#include "ublkd/base/clock.h"

#include <sys/mman.h>

/* A live disk whose worker is to be replaced: a preflight looks first. */
static void world_new_with_restart(struct world *world)
{
        world_new(world);
        world->host.features = WORLD_QUIESCES;
        world_put_loop(world, "data", "");
        world_bring_up(world, "data", "file:1");
        CHECK_INT(device_store_request_restart(world->store, "data", false), 0);
        world_settle(world, 20);
}

/* A requested restart makes no warning. */
static void check_no_warning(const struct world *world)
{
        const struct event_log *log = device_store_events(world->store);

        for (size_t i = 0; i < event_log_count(log); i++)
                if (event_log_at(log, i)->type == EVENT_WARNING
                        && event_log_at(log, i)->reason != REASON_NODE_NOT_SET)
                        CHECK_STR(event_log_at(log, i)->message, "no warning");
}

/* QUIESCE_DEV is not sent where it can crash the kernel, even to a disk that an earlier ublkd has made with it. */
static void a_restart_replaces_the_worker_once(void)
{
        static const char *const names[] = {"data", "(preflight)"};
        static const struct {
                uint64_t before, now; /* features of the driver */
                bool quiesce;
        } cases[] = {
                {WORLD_RECOVERS,                   WORLD_RECOVERS,                   false},
                {WORLD_QUIESCES,                   WORLD_QUIESCES,                   true },
                {WORLD_RECOVERS | FEATURE_QUIESCE, WORLD_RECOVERS | FEATURE_QUIESCE, false},
                {WORLD_QUIESCES,                   WORLD_RECOVERS | FEATURE_QUIESCE, false},
        };
        struct world world;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                bool quiesce = cases[i].quiesce;

                world_new(&world);
                world.host.features = cases[i].before;
                world_put_loop(&world, "data", ",\"recovery\":{\"trigger\":\"manual\"}");
                world_bring_up(&world, "data", "file:1");
                world.host.features = cases[i].now;
                CHECK_INT(device_store_request_restart(world.store, "data", false), 0);
                world_settle(&world, 20);
                world_churn(&world, names, 2, "file:1");
                CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
                CHECK(world_record(&world, "data")->status.converged
                        && !world_record(&world, "data")->recover_requested);
                CHECK_INT(world_record(&world, "data")->status.worker.restarts, 1);
                CHECK_INT(world_record(&world, "data")->status.recoveries.count, 0);
                CHECK_INT(fake_kills, 1 + !quiesce); /* of the preflight, too */
                CHECK_INT(fake_kernel.quiesces, quiesce);
                check_no_warning(&world);
                world_free(&world);
        }
}

static void a_restart_whose_preflight_fails_leaves_the_worker_alone(void)
{
        struct fake_worker *serving;
        struct world world;

        world_new_with_restart(&world);
        serving = fake_worker("data");
        CHECK(!serving->exists
                && fake_worker("(preflight)")->exists); /* what it opens, the next worker can open */
        fake_worker_die(fake_worker("(preflight)"));
        world_settle(&world, 20);
        CHECK(fake_worker("data") == serving && !fake_worker("(preflight)"));
        CHECK_INT(fake_kills, 0);
        CHECK_INT(fake_kernel.quiesces, 0);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_CANNOT_RESTART);
        CHECK_INT(device_store_request_restart(world.store, "data", false), 0); /* a new request, a new try */
        world_settle(&world, 20);
        CHECK(fake_worker("(preflight)"));
        fake_worker_die(serving); /* and ublkd recovers the disk at once */
        world_settle(&world, 20);
        CHECK(fake_worker("data"));
        world_free(&world);
}

/* A preflight worker that could not take the disk over keeps the one that serves from being stopped. */
static void a_restart_of_a_disk_that_cannot_be_served_as_before(void)
{
        struct fake_worker *serving;
        struct world world;

        world_new_with_restart(&world);
        serving = fake_worker("data");
        fake_worker("(preflight)")->params.dma_alignment = 4096;
        fake_worker_open(fake_worker("(preflight)"), "file:1");
        world_settle(&world, 20);
        fake_worker_die(fake_worker("(preflight)"));
        world_settle(&world, 20);
        CHECK(fake_worker("data") == serving);
        CHECK_INT(fake_kernel.quiesces, 0);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_CANNOT_RESTART);
        CHECK(strstr(world_record(&world, "data")->status.message, "dmaAlignment"));
        world_free(&world);
}

/* The client got the refusal, and may be gone: a later supervisor does not restart the worker after all. */
static void a_restart_that_was_refused_stays_refused(void)
{
        struct world world;

        world_new_with_restart(&world);
        fake_worker_die(fake_worker("(preflight)"));
        world_settle(&world, 20);
        world_restart_with_workers(&world);
        fake_worker_greet(fake_worker("data"), world_record(&world, "data")->epoch, 0);
        world_settle(&world, 20);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK(!fake_worker("(preflight)"));
        CHECK_INT(fake_kernel.quiesces, 0);
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_CANNOT_RESTART);
        CHECK_INT(device_store_request_restart(world.store, "data", false), 0);
        world_settle(&world, 20);
        CHECK(fake_worker("(preflight)"));
        world_free(&world);
}

/* Return how many such events there are, after one request to recover for each `again`. */
static unsigned count_lines(const char *words, unsigned again)
{
        int stderr_then = dup(STDERR_FILENO), file = memfd_create("log", MFD_CLOEXEC);
        char text[4096] = "";
        struct world world;
        unsigned count = 0;

        CHECK(stderr_then >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
        world_new(&world);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(device_store_request_restart(world.store, "data", false),
                0); /* this requests a recovery, too */
        for (unsigned i = 0; i < again; i++) {
                CHECK_INT(device_store_request_recover(world.store, "data"), 0);
                world_settle(&world, 5);
        }
        world_free(&world);
        CHECK(dup2(stderr_then, STDERR_FILENO) >= 0);
        CHECK(pread(file, text, sizeof(text) - 1, 0) > 0);
        for (const char *at = text; (at = strstr(at, words)); at++)
                count++;
        close(stderr_then);
        close(file);
        return count;
}

static void what_is_asked_for_again_is_one_line(void)
{
        CHECK_INT(count_lines("another worker", 0), 1);
        CHECK_INT(count_lines("another worker", 3), 1);
        CHECK_INT(count_lines("Serving /dev/ublkb0.", 3), 1);
}

/* In a recovery the dead worker may have the lock until the driver reports that its requests are done. But
 * once a worker has found the store in use, the next worker locks first: ublkd must not begin another
 * recovery in vain. */
static void a_worker_gets_the_time_to_lock_its_store(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_settle(&world, 0);
        CHECK_INT(fake_worker("data")->lock, WORKER_LOCK_TO_OPEN);
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(device_store_request_restart(world.store, "data", false), 0);
        world_settle(&world, 5);
        if (CHECK(fake_worker("(preflight)")))
                CHECK_INT(fake_worker("(preflight)")->lock, WORKER_LOCK_NEVER);
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 5);
        if (!CHECK(fake_worker("data")))
                return;
        CHECK_INT(fake_worker("data")->lock, WORKER_LOCK_TO_SERVE);
        fake_worker_refuse(fake_worker("data"), "BackingInUse", "It cannot.");
        world_settle(&world, 0);
        CHECK_INT(device_store_request_recover(world.store, "data"), 0); /* skips the back-off */
        world_settle(&world, 5);
        if (!CHECK(fake_worker("data")))
                return;
        CHECK_INT(fake_worker("data")->lock, WORKER_LOCK_TO_OPEN);
        world_bring_up(&world, "data", "file:1");
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 5);
        if (CHECK(fake_worker("data")))
                CHECK_INT(fake_worker("data")->lock, WORKER_LOCK_TO_SERVE);
        world_free(&world);
}

/* Every death makes the back-off longer, so the test sees it in the end even on a busy machine. */
static void die_until_back_off(struct world *world, const char *name)
{
        for (unsigned deaths = 0; fake_worker(name) && deaths < 20; deaths++) {
                fake_worker_die(fake_worker(name));
                world_settle(world, 0);
        }
        CHECK(!fake_worker(name));
}

static void a_second_request_to_recover_skips_the_back_off_again(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_settle(&world, 0);
        for (unsigned i = 0; i < 2; i++) {
                die_until_back_off(&world, "data");
                CHECK_INT(device_store_request_recover(world.store, "data"), 0);
                world_settle(&world, 0);
                CHECK(fake_worker("data"));
        }
        world_free(&world);
}

/* A second worker would wait forever for the queues of the living one. */
static void no_worker_is_started_while_one_may_live(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_stop_reconciler(&world);
        fake_adopt_error = -EMFILE;
        world_start_reconciler(&world);
        world_settle(&world, 5);
        CHECK(!fake_worker("data"));
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_WORKER_UNREACHABLE);
        CHECK_INT(world_phase(&world, "data"), PHASE_UNKNOWN); /* the status says nothing about the disk */
        fake_adopt_error = -ENOENT;
        world_put_loop(&world, "data", ",\"labels\":{\"a\":\"b\"}"); /* starts a turn at once */
        world_settle(&world, 5);
        CHECK(fake_worker("data"));
        world_free(&world);
}

/* A worker that a dying supervisor has started may exit without sending HELLO. That shows nothing about the
 * disk, whose I/O waits for the next worker. */
static void a_worker_that_leaves_without_a_word_does_not_take_the_disk_along(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        fake_disks[0].state = KERNEL_STATE_QUIESCED;
        world_restart_with_workers(&world);
        fake_worker_leave(fake_worker("data"));
        world_settle(&world, 5);
        CHECK_INT(fake_disks[0].state, KERNEL_STATE_QUIESCED);
        fake_worker_die(fake_worker("data"));
        world_bring_up(&world, "data", "file:1");
        CHECK(fake_disks[0].exists);
        world_free(&world);
}

/* During a try, its deadline is not the time of the next try. */
static void a_next_try_is_reported_only_during_the_back_off(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_settle(&world, 5);
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 5); /* the second starts at once, and sends nothing */
        CHECK(fake_worker("data"));
        CHECK_INT(world_record(&world, "data")->status.next_try_at, 0);
        die_until_back_off(&world, "data");
        CHECK(world_record(&world, "data")->status.next_try_at > 0);
        world_free(&world);
}

static void check_counts(const struct world *world, unsigned restarts, unsigned recoveries)
{
        const struct device_status *status = &world_record(world, "data")->status;

        CHECK_INT(status->worker.restarts, restarts);
        CHECK_INT(status->recoveries.count, recoveries);
        CHECK((status->recoveries.last_ms > 0) == (recoveries > 0));
}

static void restarts_and_recoveries_are_counted_on_by_the_next_supervisor(void)
{
        const struct device_region_key key = {.queues = 1};
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        /* CONFIG has it for a real worker */
        close_fd(runtime_dir_ensure_region(world.dir, world_record(&world, "data")->uid, &key));
        world_bring_up(&world, "data", "file:1");
        fake_worker_die(fake_worker("data"));
        fake_disks[0].state = KERNEL_STATE_QUIESCED;
        world_settle(&world, 0);
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        check_counts(&world, 1, 1);
        world_restart_with_workers(&world);
        fake_worker_greet(fake_worker("data"), world_record(&world, "data")->epoch, 0);
        world_settle(&world, 0);
        check_counts(&world, 1, 1);
        world_stop_reconciler(&world); /* the worker dies unseen */
        fake_disks[0].state = KERNEL_STATE_QUIESCED;
        world_start_reconciler(&world);
        world_settle(&world, 0);
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        check_counts(&world, 2, 2);
        world_stop_reconciler(&world);
        fake_adopt_error = 0; /* it dies during the adoption */
        world_start_reconciler(&world);
        fake_adopt_error = -ENOENT;
        world_settle(&world, 0);
        fake_disks[0].state = KERNEL_STATE_QUIESCED;
        fake_worker_leave(fake_worker("data")); /* its channel breaks first */
        world_settle(&world, 0);
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 0);
        world_bring_up(&world, "data", "file:1");
        check_counts(&world, 3, 3);
        world_free(&world);
}

/* A served disk was reported as Recovering until its worker got the CPU. */
static void nothing_is_reported_before_the_adopted_worker_has_answered(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        world_stop_reconciler(&world);
        fake_adopt_error = 0;
        world_start_reconciler(&world);
        fake_adopt_error = -ENOENT;
        world_settle(&world, 20);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        fake_worker_greet(fake_worker("data"), world_record(&world, "data")->epoch, 0);
        world_settle(&world, 0);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        world_free(&world);
}

/* The driver is about to remove the disk: no request waits there. */
static void a_disk_that_cannot_be_recovered_is_not_reported_as_waiting(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", ",\"recovery\":{\"trigger\":\"manual\",\"onCrash\":\"none\"}");
        world_bring_up(&world, "data", "file:1");
        fake_worker_die(fake_worker("data"));
        fake_disks[0].state = KERNEL_STATE_LIVE;
        world_settle(&world, 0);
        CHECK_INT(world_phase(&world, "data"), PHASE_STOPPING);
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_WAITS_FOR_RECOVER);
        CHECK(strstr(world_record(&world, "data")->status.message, "'ublkctl recover data'"));
        fake_disks[0].state = KERNEL_STATE_DEAD;
        for (unsigned i = 0; i < 1000 && world_phase(&world, "data") != PHASE_FAILED; i++)
                world_settle(&world, 0);
        CHECK_INT(world_phase(&world, "data"), PHASE_FAILED);
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_WAITS_FOR_RECOVER);
        for (unsigned i = 0; i < 1000 && fake_disks[0].exists; i++)
                world_settle(&world, 0);
        CHECK(!fake_disks[0].exists);
        world_free(&world);
}

/* Requests of the dead worker delay the recovery. */
static void begin_recovery_that_is_held(struct world *world, const char *more)
{
        world_new(world);
        world_put_loop(world, "data", more);
        world_bring_up(world, "data", "file:1");
        fake_worker_die(fake_worker("data"));
        fake_disks[0].state = KERNEL_STATE_QUIESCED;
        fake_kernel.held = true;
        world_settle(world, 0);
        fake_worker_open(fake_worker("data"), "file:1");
}

/* A hanging backing store delays the recovery; only the status reports it. */
static void requests_of_a_dead_worker_are_reported_until_they_are_done(void)
{
        struct world world;

        begin_recovery_that_is_held(&world, "");
        world_wait_value(&world, "data", "in flight");
        CHECK_INT(world_phase(&world, "data"), PHASE_RECOVERING);
        fake_kernel.held = false;
        world_settle(&world, 150);
        fake_worker_ready(fake_worker("data"));
        world_settle(&world, 5);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK(!strstr(world_record(&world, "data")->status.message, "in flight"));
        world_free(&world);
}

static bool is_opening(const char *name)
{
        return fake_worker(name) && fake_worker_stage(fake_worker(name)) == WORKER_STAGE_OPENING;
}

/* The cause that kept a disk from its recovery does not apply to the next disk. */
static void a_recovery_that_was_given_up_does_not_affect_the_next_disk(void)
{
        struct world world;

        begin_recovery_that_is_held(&world, ",\"recovery\":{\"giveUpAfter\":\"2s\"}");
        for (unsigned i = 0; i < 20000 && (fake_disks[0].exists || !is_opening("data")); i++) {
                if (fake_worker("data") && fake_worker_stage(fake_worker("data")) == WORKER_STAGE_LEAVING)
                        fake_worker_die(fake_worker("data"));
                world_settle(&world, 0);
        }
        CHECK(!fake_disks[0].exists);
        CHECK(!strstr(world_record(&world, "data")->status.message, "in flight"));
        world_bring_up(&world, "data", "file:1");
        world_free(&world);
}

/* During a recovery, each turn takes CPU time from the worker. */
static void a_worker_that_has_got_go_is_not_asked_about_for_a_while(void)
{
        struct world world;
        unsigned looks;
        int64_t began;

        world_new(&world);
        world.host.features = WORLD_QUIESCES; /* else ublkd looks again before it begins */
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        began = clock_msec(CLOCK_MONOTONIC); /* the rest after the start of the next worker begins later */
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 0);
        looks = fake_kernel.looks;
        fake_worker_open(fake_worker("data"), "file:1");
        world_settle(&world, 5);
        CHECK_INT(fake_worker_stage(fake_worker("data")), WORKER_STAGE_FETCHING);
        CHECK(fake_kernel.looks == looks || clock_msec(CLOCK_MONOTONIC) - began >= 40);
        world_settle(&world, 60);
        CHECK(fake_kernel.looks > looks);
        world_free(&world);
}

/* The driver has just taken START_USER_RECOVERY: the look after END_USER_RECOVERY is the only one. */
static void a_recovery_that_goes_on_is_ended_without_a_look(void)
{
        struct world world;
        unsigned looks;
        int64_t began;

        world_new(&world);
        world.host.features = WORLD_QUIESCES;
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        began = clock_msec(CLOCK_MONOTONIC);
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 0);
        fake_worker_open(fake_worker("data"), "file:1");
        world_settle(&world, 1);
        CHECK_INT(fake_worker_stage(fake_worker("data")), WORKER_STAGE_FETCHING);
        looks = fake_kernel.looks;
        fake_worker_ready(fake_worker("data"));
        world_settle(&world, 1);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK(fake_kernel.looks == looks + 1 || clock_msec(CLOCK_MONOTONIC) - began >= 40);
        world_free(&world);
}

static const struct device_condition *stable_path(const struct world *world)
{
        return &world_record(world, "data")->status.conditions.of[CONDITION_STABLE_PATH];
}

static void a_path_that_may_change_is_reported_once(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_settle(&world, 0);
        CHECK_INT(stable_path(&world)->status, CONDITION_ABSENT);
        fake_worker_advise(fake_worker("data"), "/dev/disk/by-id/wwn-1");
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK_INT(stable_path(&world)->status, CONDITION_FALSE);
        CHECK_INT(stable_path(&world)->reason, REASON_UNSTABLE_PATH);
        CHECK(strstr(stable_path(&world)->message, "/dev/disk/by-id/wwn-1"));
        CHECK_INT(world_count_events(&world, REASON_UNSTABLE_PATH), 1);
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 5);
        CHECK_INT(stable_path(&world)->status, CONDITION_FALSE);
        fake_worker_advise(fake_worker("data"), "/dev/disk/by-id/wwn-1");
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(stable_path(&world)->status, CONDITION_FALSE);
        CHECK_INT(world_count_events(&world, REASON_UNSTABLE_PATH), 1);
        world_free(&world);
}

static void a_stable_path_makes_no_condition(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_settle(&world, 0);
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(stable_path(&world)->status, CONDITION_ABSENT);
        CHECK_INT(world_count_events(&world, REASON_UNSTABLE_PATH), 0);
        world_free(&world);
}

int main(void)
{
        a_worker_that_has_got_go_is_not_asked_about_for_a_while();
        a_recovery_that_goes_on_is_ended_without_a_look();
        requests_of_a_dead_worker_are_reported_until_they_are_done();
        a_recovery_that_was_given_up_does_not_affect_the_next_disk();
        a_restart_replaces_the_worker_once();
        a_restart_whose_preflight_fails_leaves_the_worker_alone();
        a_restart_of_a_disk_that_cannot_be_served_as_before();
        a_restart_that_was_refused_stays_refused();
        what_is_asked_for_again_is_one_line();
        a_worker_gets_the_time_to_lock_its_store();
        a_second_request_to_recover_skips_the_back_off_again();
        no_worker_is_started_while_one_may_live();
        a_worker_that_leaves_without_a_word_does_not_take_the_disk_along();
        a_next_try_is_reported_only_during_the_back_off();
        restarts_and_recoveries_are_counted_on_by_the_next_supervisor();
        nothing_is_reported_before_the_adopted_worker_has_answered();
        a_disk_that_cannot_be_recovered_is_not_reported_as_waiting();
        a_path_that_may_change_is_reported_once();
        a_stable_path_makes_no_condition();
        return check_report();
}
