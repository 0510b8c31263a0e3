/* SPDX-License-Identifier: MIT */
/* One turn of a device: ask the kernel, look at the worker, plan(), carry out one step. An event meanwhile
 * only queues another turn. History (how often, since when) is in struct attempt; decisions read facts. */
#include "ublkd/reconcile/device_turn.h"
#include "ublkd/reconcile/device_look.h"
#include "ublkd/reconcile/device_publish.h"
#include "ublkd/reconcile/device_steps.h"
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/backing/device_claim.h"
#include "ublkd/reconcile/backing/device_errors.h"
#include "ublkd/reconcile/backing/device_faults.h"
#include "ublkd/reconcile/backing/device_image.h"
#include "ublkd/reconcile/disk/device_node.h"
#include "ublkd/reconcile/disk/device_partitions.h"
#include "ublkd/reconcile/disk/device_cdi.h"
#include "ublkd/reconcile/disk/device_private.h"
#include "ublkd/reconcile/disk/device_release.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/backing/device_path.h"
#include "ublkd/reconcile/worker/device_action.h"
#include "ublkd/reconcile/worker/device_group.h"
#include "ublkd/reconcile/worker/device_preflight.h"
#include "ublkd/reconcile/worker/device_progress.h"
#include "ublkd/reconcile/backing/device_shared.h"
#include "ublkd/reconcile/parts/device_step.h"
#include "ublkd/reconcile/worker/device_worker.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"
#include "ublkd/reconcile/view/device_wish.h"
#include "ublkd/base/clock.h"
#include "ublkd/disks/disk_size.h"
#include "ublkd/reconcile/view/device_geometry.h"
#include "ublkd/reconcile/view/observe.h"
#include "ublkd/reconcile/view/turn_view.h"
#include "ublkd/reconcile/view/user_request.h"

#include "ublkd/base/log.h"
#include "ublkd/runtime/runtime_dir.h"

#include <string.h>

enum {
        ERASE_RETRY_USEC = 5 * 1000 * 1000,
        ADOPT_RETRY_USEC = 1000 * 1000,
        UNSERVED_USEC = 1000 * 1000,
        WORKER_USEC = 50 * 1000,     /* how long a worker may work before the next turn looks at it */
        UNREPORTED_USEC = 20 * 1000, /* how long a step of a recovery may take before the status shows it */
};

void device_seen(struct managed_device *device)
{
        if (!device->first.boot_pass_due)
                return;
        device->first.boot_pass_due = false;
        if (--device->reconciler->boot_pass_left == 0)
                (void)sd_event_source_set_enabled(device->reconciler->queue.run, SD_EVENT_ON);
}

static void count_turn(struct managed_device *device)
{
        struct daemon_counters *counters = &device->reconciler->counters;
        uint64_t took = monotonic_now() - device->turn.began, bound = TURN_BUCKET_FIRST_USEC;
        size_t i = 0;

        if (device->turn.began == 0)
                return;
        device->turn.began = 0;
        counters->turns++;
        counters->turn_usec += took;
        for (; i < TURN_BUCKETS && took > bound; i++)
                bound *= 4;
        if (i < TURN_BUCKETS)
                counters->turn_buckets[i]++;
}

/* Wait for `at`, or for an event. at: CLOCK_MONOTONIC. */
static void device_rest(struct managed_device *device, uint64_t at)
{
        count_turn(device);
        device->turn.state = TURN_IDLE;
        if (device->turn.again) {
                device->turn.again = false;
                if (device->turn.unreported)
                        (void)sd_event_source_set_enabled(device->turn.timer, SD_EVENT_OFF);
                device->turn.unreported = false;
                device_wake(device);
                return;
        }
        device->turn.unreported = false;
        if (at == UINT64_MAX) {
                (void)sd_event_source_set_enabled(device->turn.timer, SD_EVENT_OFF);
                return;
        }
        if (sd_event_source_set_time(device->turn.timer, at) < 0
                || sd_event_source_set_enabled(device->turn.timer, SD_EVENT_ONESHOT) < 0)
                device_wake(device); /* better too early than never */
}

/* ---- the turn ---- */

static void report(struct managed_device *device, const struct device_record *record, uint64_t next_try)
{
        int r = device_publish(device, record, next_try);

        device_seen(device);
        if (r < 0)
                log_errno(LOG_ERR, device->id.name, r,
                        "The status cannot be updated: %s; retrying at the next change", strerror(-r));
}

/* Erase the record, and with it free `device`: the reconciler, a subscriber of the store, does that. Return
 * false if the record could not be erased.
 *
 * Release first what the next ublkd finds only by the record: files, and a descriptor that the service manager
 * would keep for ever, with its lock on the store. An image goes before that, so that no other device can begin to use
 * it: a death between the two repeats it. */
static bool device_drop(struct managed_device *device, const struct device_record *record)
{
        int r;

        if (device_cdi_is_left(device) || !device_image_remove(device, record))
                return false;
        device_claim_release(device);
        device_group_remove(device);
        device_backing_release(device);
        device_shared_drop(device);
        (void)runtime_dir_remove_worker(device->env->config.runtime_dir, device->id.uid);
        r = device_store_remove(device->env->config.store, device->id.name);
        if (r < 0)
                log_errno(LOG_ERR, device->id.name, r, "The record cannot be erased: %s; retrying in %d s",
                        strerror(-r), ERASE_RETRY_USEC / 1000000);
        return r >= 0;
}

/* Return whether the right worker serves the right disk; its size may still differ. */
static bool is_served(const struct managed_device *device)
{
        static const bool served[_WANT_MAX] = {
                [WANT_PRESENT] = true, [WANT_EXTENDED] = true, [WANT_GROWN] = true};

        return served[device->view.facts.want] && device->view.facts.kernel == KERNEL_LIVE
               && device->view.facts.worker == PLAN_WORKER_SERVING;
}

/* Store what must survive the supervisor, for a device that is as wanted. Return false if `device` was
 * freed. */
static bool device_settle(struct managed_device *device, const struct device_record *record, uint64_t due)
{
        struct device_store *store = device->env->config.store;
        bool manual = record->spec && record->spec->options.recovery.trigger == TRIGGER_MANUAL;
        bool held = strcmp(record->held_boot, device->env->boot_id) == 0;
        int r = 0;

        device_faults_settle(device, record);
        device_errors_read(device);
        if (device->view.facts.want == WANT_ABSENT) /* another program may have deleted the disk */
                device_hide_node(device, record);
        if (is_served(device)) {
                device_recovered(device);
                device_image_serves(
                        device, device->view.geometry.error == 0 ? device->view.geometry.size : 0);
                device_progress_watch(device, record);
                device_group_follow(device, record);
                if (device->view.facts.want == WANT_PRESENT
                        || device->attempt.tries == 0) /* nothing has failed since */
                        device_note_clear(device);
                device_show_node(device, record);
                device_private_give(device, record);
                device_cdi_write(device, record);
                device_shared_apply(device, record);
                (void)device_keep_record(device);
                device_action_follow(device, record, true);
                if (manual != held || record->recover_requested)
                        r = device_store_set_held(store, device->id.name, manual);
        } else if (device->view.facts.want == WANT_ABSENT && record->deleting) {
                /* an ADD_DEV that was given up may still create a disk: wait for that */
                if (due != UINT64_MAX)
                        return true;
                return !device_drop(device, record);
        } else if (device->view.facts.want == WANT_ABSENT && (held || record->recover_requested))
                r = device_store_set_held(store, device->id.name, false);
        if (r < 0)
                log_errno(LOG_ERR, device->id.name, r,
                        "The database cannot be written: %s; retrying at the next change", strerror(-r));
        return true;
}

static void log_action(const struct managed_device *device)
{
        log_debug(device->id.name, "want %s, kernel %s, worker %s: %s",
                plan_want_to_string(device->view.facts.want),
                plan_kernel_to_string(device->view.facts.kernel),
                plan_worker_to_string(device->view.facts.worker), plan_action_to_string(device->step.action));
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

static enum plan_worker worker_now(const struct managed_device *device)
{
        return device->process.state == WORKER_KILLED ? PLAN_WORKER_LEAVING
                                                      : observe_worker(device->process.worker);
}

static void on_step_done(struct managed_device *device, int result)
{
        /* The worker reports when it is done; a turn before that would only take a CPU from it. */
        static const bool worker_is_next[_ACTION_MAX] = {
                [ACTION_SPAWN] = true, [ACTION_SET_PARAMS] = true, [ACTION_BEGIN_RECOVERY] = true};
        struct daemon_counters *counters = &device->reconciler->counters;

        if (result < 0)
                counters->steps[device->step.action].failed++;
        else
                counters->steps[device->step.action].done++;
        attempt_done(&device->attempt, device->step.action, result, monotonic_now());
        if (result < 0)
                log_errno(LOG_DEBUG, device->id.name, result, "%s: %s",
                        plan_action_to_string(device->step.action), strerror(-result));
        if (worker_is_next[device->step.action] && result >= 0) {
                device_rest(device, monotonic_now() + WORKER_USEC);
                return;
        }
        device->turn.again = true;
        device_rest(device, UINT64_MAX);
}

/* NULL: it has no worker, or one that has not reported them. */
static const struct disk_params *params_of(const struct managed_device *device)
{
        return device->process.worker ? worker_proc_params(device->process.worker) : NULL;
}

static bool worker_is_outdated(const struct managed_device *device, const struct device_record *record)
{
        return device->process.worker && worker_proc_restart(device->process.worker) != record->restart
               && !device_preflight_refusal(device, record, NULL);
}

static struct plan_wish wish_of(
        struct managed_device *device, const struct device_record *record, uint64_t now)
{
        const struct disk_params *params = params_of(device);

        device_note_loss(device, now);
        device_faults_accept(device, record);
        return device_wish(record,
                &(const struct wish_view){
                        .turn = &device->view,
                        .boot_id = device->env->boot_id,
                        .features = device_features(device),
                        .allows_tests = device->env->config.allow_fault_target,
                        .size_of_worker = params ? params->size : 0,
                        .lost_since = device->process.lost_since,
                        .handover_until = attempt_handover_until(&device->attempt),
                        .worker_is_old = device_worker_is_old(device, record),
                        .worker_is_outdated = worker_is_outdated(device, record),
                },
                now);
}

/* Return when the device needs another turn for its partitions; UINT64_MAX: none. */
static uint64_t follow_partitions(struct managed_device *device, const struct device_record *record)
{
        if (is_served(device))
                return device_partitions_follow(device, record);
        if (device->view.facts.kernel == KERNEL_ABSENT || device->view.facts.kernel == KERNEL_ADDED)
                device_partitions_reset(device);
        return UINT64_MAX;
}

/* Return whether the device has no worker, and gets none soon: what follows does not hold a recovery up. */
static bool rests_unserved(const struct managed_device *device, uint64_t due, uint64_t now)
{
        return device->view.facts.worker == PLAN_WORKER_NONE
               && (device->step.action == ACTION_NOTHING || (due != UINT64_MAX && due > now + UNSERVED_USEC));
}

/* Return whether openers wait for the step: it is begun first, and the status is reported while it goes on. */
static bool comes_before_report(enum plan_action action)
{
        return action == ACTION_SPAWN || action == ACTION_BEGIN_RECOVERY || action == ACTION_END_RECOVERY;
}

/* Return whether the report is left to the timer: the status shows the recovery since its SPAWN, these steps normally
 * take less than a millisecond, and what follows them waits for ublkd. The first pass waits for a report. */
static bool leaves_report(struct managed_device *device)
{
        if (device->first.boot_pass_due || device->step.action == ACTION_SPAWN)
                return false;
        device->turn.unreported =
                sd_event_source_set_time(device->turn.timer, monotonic_now() + UNREPORTED_USEC) >= 0
                && sd_event_source_set_enabled(device->turn.timer, SD_EVENT_ONESHOT) >= 0;
        return device->turn.unreported;
}

void device_turn_timer(struct managed_device *device)
{
        bool late = device->turn.state == TURN_STEPPING && device->turn.unreported;

        device->turn.unreported = false;
        if (late)
                report(device, device_store_get(device->env->config.store, device->id.name), UINT64_MAX);
        else
                device_wake(device);
}

/* Let the parts of the device follow its record, and derive what is wanted. */
static struct plan_wish follow_record(
        struct managed_device *device, const struct device_record *record, uint64_t now)
{
        struct plan_wish wish;

        device_cdi_follow(device, record);
        device_private_follow(device, record);
        device_backing_follow(device, record);
        device_claim_follow(device); /* after it: the claim goes with the store that is kept */
        device_release_follow(device, record);
        device_note_follow(device);
        wish = wish_of(device, record, now);
        device->view.facts.want = plan_want(&wish);
        device_path_follow(device, record);
        return wish;
}

/* Return whether a ublkd before this one has sent LEAVE to the worker. */
static bool leaves_for_another(const struct managed_device *device, const struct plan_wish *wish)
{
        return wish->worker_is_outdated && device->view.facts.worker == PLAN_WORKER_LEAVING
               && device->process.state == WORKER_HELD && worker_proc_adopted(device->process.worker);
}

/* Choose the step. Return when it is due; UINT64_MAX: an event decides. */
static uint64_t choose_step(struct managed_device *device, const struct plan_wish *wish, uint64_t now)
{
        if (device->view.kernel.state != KERNEL_STATE_LIVE)
                attempt_held(&device->attempt); /* the driver has noticed the death */
        if (leaves_for_another(device, wish))
                attempt_retired(&device->attempt);
        device->view.facts.trouble = attempt_observe(&device->attempt, &device->view.facts, now);
        device->step.action = plan(&device->view.facts);
        log_action(device);
        return min_u64(attempt_due(&device->attempt, device->step.action, now), plan_want_until(wish));
}

/* No step is due: report a worker that is late with HELLO, and wait for `due` at most. */
static void wait_for_step(struct managed_device *device, const struct device_record *record, bool waits,
        uint64_t due, uint64_t follow_due, uint64_t now)
{
        uint64_t hello_deadline = device_hello_deadline(device);

        if (now >= hello_deadline)
                report(device, record, waits ? UINT64_MAX : due); /* a deadline is not a next try */
        due = min_u64(due, follow_due);
        device_rest(device, now < hello_deadline ? min_u64(due, hello_deadline) : due);
}

static void take_step(struct managed_device *device, const struct device_record *record)
{
        device->turn.state = TURN_STEPPING;
        if (comes_before_report(device->step.action)) {
                bool left = leaves_report(device);

                device_steps_run(device, record, on_step_done);
                if (!left)
                        report(device, record, UINT64_MAX);
        } else {
                report(device, record, UINT64_MAX);
                device_steps_run(device, record, on_step_done);
        }
}

static void device_decide(struct managed_device *device, const struct device_record *record)
{
        uint64_t now = monotonic_now(), due, follow_due;
        const struct plan_wish wish = follow_record(device, record, now);
        bool waits;

        due = choose_step(device, &wish, now);
        if (device->step.unasked && !device_command_looks(device->step.action)) {
                device->step.seen_at = 0;
                device->turn.again = true;
                device_rest(device, UINT64_MAX);
                return;
        }
        if (!is_served(device))
                device_progress_end(device);
        if ((device->step.action == ACTION_NOTHING || is_served(device))
                && !device_settle(device, record, due))
                return;
        follow_due = follow_partitions(device, record);
        if (is_served(device))
                follow_due = min_u64(follow_due, device_node_wait(device, now));
        if (record->deleting && device->step.action == ACTION_NOTHING) /* the record could not be erased */
                due = min_u64(due, min_u64(device_image_due(device), now + ERASE_RETRY_USEC));
        waits = device->step.action == ACTION_NOTHING || device->step.action == ACTION_WAIT;
        if (rests_unserved(device, due, now))
                device_action_follow(device, record, false);
        if (waits || due > now)
                wait_for_step(device, record, waits, due, follow_due, now);
        else
                take_step(device, record);
}

static bool has_new_request(const struct managed_device *device, const struct device_record *record)
{
        return !user_request_equal(device->handled.request, user_request_of(record));
}

/* Note a new spec, or a new request to try or to recover: what failed before may succeed now. */
static void device_take_request(struct managed_device *device, const struct device_record *record)
{
        bool new_request = has_new_request(device, record);
        bool new_recover = record->recover_requested && !device->handled.recover;

        if (new_request) {
                device_note_clear(device);
                device->step.dropped_flags = 0;
        }
        if (new_request || new_recover) {
                attempt_reset(&device->attempt);
                device_backing_retry(device);
        }
        device->handled.request = user_request_of(record);
        device->handled.recover = record->recover_requested;
}

/* Once in a turn at most: every recovery does it, and files of /sys are slow to open. */
static void measure_disk(struct managed_device *device, const struct device_record *record)
{
        struct device_geometry disk = {.error = -ENODEV}, before = device->view.geometry;
        int number = turn_view_disk(&device->view);
        bool is_known = before.error == 0 && before.size > 0 && before.number == number;

        disk.number = number;
        if (is_known && !device_geometry_matters(&device->view.facts, attempt_may_grow(&device->attempt)))
                disk = before;
        else if (is_known) {
                disk.block_size = before.block_size;
                disk.error = disk_size_read("/sys", number, &disk.size, NULL);
        } else if (number >= 0)
                disk.error = disk_size_read("/sys", number, &disk.size, &disk.block_size);
        turn_view_measure(&device->view, record, params_of(device), &disk);
}

/* Report the status although the kernel has not answered: its facts stay as they were. */
static void device_stay_blind(struct managed_device *device, const struct device_record *record, int error)
{
        uint64_t now = monotonic_now(), next_try = attempt_blind(&device->attempt, now);
        struct plan_wish wish;

        device->step.seen_at = 0;
        device_note(device, REASON_CONTROL_PLANE, "Asking the kernel about /dev/ublkb%d failed: %s.",
                record->number, strerror(-error));
        turn_view_stay(&device->view);
        measure_disk(device, record);
        wish = wish_of(device, record, now);
        device->view.facts.want = plan_want(&wish);
        /* The limits come after the timeout; not before ublkd has seen the disk live. */
        if (is_served(device))
                device_shared_apply(device, record);
        report(device, record, next_try);
        device_rest(device, next_try);
}

static void on_kernel_answer(void *userdata, int result, const struct kernel_device *kernel)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);

        device->step.call = NULL;
        device_take_request(device, record); /* also requests that came while the kernel answered */
        if (device->process.worker && worker_proc_death(device->process.worker))
                device_take_death(device);
        if (worker_now(device)
                != device->view.worker_seen) { /* kernel and worker were seen at different times */
                device->step.seen_at = 0;
                device->turn.again = true;
                device_rest(device, UINT64_MAX);
                return;
        }
        if (result < 0 && result != -ENODEV) {
                device_stay_blind(device, record, result);
                return;
        }
        device->first.unseen = false;
        device->step.seen_at = device->step.asked_at;
        turn_view_see(&device->view, record, result < 0 ? NULL : kernel);
        measure_disk(device, record);
        if (device->view.facts.kernel != KERNEL_ABSENT)
                device->step.candidate = -1;  /* the device has the number from now on */
        if (device_end_unreachable(device)) { /* its worker is another one now */
                device->turn.again = true;
                device_rest(device, UINT64_MAX);
                return;
        }
        device_decide(device, record);
}

static void device_ask_kernel(struct managed_device *device, const struct device_record *record)
{
        int r;

        device->turn.state = TURN_OBSERVING;
        device->view.worker_seen = worker_now(device);
        device->step.unasked =
                record->number >= 0
                && ((!has_new_request(device, record) && device_may_begin_unasked(device, record))
                        || device_may_end_unasked(device));
        device->step.asked_at = device->step.unasked ? device->step.seen_at : monotonic_now();
        if (record->number < 0) {
                on_kernel_answer(device, -ENODEV, NULL);
                return;
        }
        if (device->step.unasked) {
                struct kernel_device kernel = device->view.kernel;

                /* The answer may be older than the driver's release of the disk. Since then the driver has taken
                 * START_USER_RECOVERY, which it does not for a live one (ublk_ctrl_start_recovery(), ublk_drv.c). */
                if (device->step.action == ACTION_BEGIN_RECOVERY && kernel.state == KERNEL_STATE_LIVE)
                        kernel.state = KERNEL_STATE_QUIESCED;
                on_kernel_answer(device, 0, &kernel);
                return;
        }
        r = ublk_ctl_get_info(device->env->ctl, record->number, on_kernel_answer, device, &device->step.call);
        if (r < 0)
                on_kernel_answer(device, r, NULL);
}

/* Log an unusable record once, in the first pass; the store has an event of it. */
static void log_unusable(const struct managed_device *device, const struct device_record *record)
{
        if (device->first.boot_pass_due && (record->quarantine || record->age != RECORD_CURRENT))
                log_record(LOG_WARNING,
                        &(const struct log_fields){
                                .device = device->id.name, .reason = reason_to_string(record->status.reason)},
                        "%s", record->status.message);
}

/* Return whether ublkd must not touch the device: an older database must not stop or start a disk, nor give
 * it another number. The record of a removed device may be erased. */
static bool is_left_alone(const struct device_record *record)
{
        return record->age == RECORD_OUTDATED || (record->age == RECORD_REMOVED && !record->deleting);
}

static void device_leave_alone(struct managed_device *device, const struct device_record *record)
{
        log_unusable(device, record);
        device_seen(device);
        device_rest(device, UINT64_MAX);
}

/* Return whether the record can be erased without asking the kernel, which never got a command for the
 * device. */
static bool could_be_dropped(const struct managed_device *device, const struct device_record *record)
{
        return record->deleting && (record->number < 0 || device->first.unasked) && !device->process.worker;
}

void device_turn_begin(struct managed_device *device)
{
        struct reconciler *reconciler = device->reconciler;
        const struct device_record *record = device_store_get(reconciler->env.config.store, device->id.name);

        device->turn.again = false;
        device->turn.began = monotonic_now();
        if (is_left_alone(record)) {
                device_leave_alone(device, record);
                return;
        }
        if (device->process.worker && worker_proc_death(device->process.worker))
                device_take_death(device);
        if (device->process.state == WORKER_UNKNOWN)
                device_adopt(device);
        if (device->process.state == WORKER_UNKNOWN) {
                report(device, record, monotonic_now() + ADOPT_RETRY_USEC);
                device_rest(device, monotonic_now() + ADOPT_RETRY_USEC);
                return;
        }
        if (could_be_dropped(device, record) && device_drop(device, record))
                return;
        if (!reconciler->env.ctl || (!record->spec && !record->deleting)) { /* nothing can be done */
                log_unusable(device, record);
                if (!device->process.worker)
                        device_action_follow(device, record, false);
                report(device, record, UINT64_MAX);
                device_rest(device,
                        could_be_dropped(device, record) ? monotonic_now() + ERASE_RETRY_USEC : UINT64_MAX);
                return;
        }
        device->first.unasked = false;
        device_ask_kernel(device, record);
}
