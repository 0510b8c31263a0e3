/* SPDX-License-Identifier: MIT */
/* Carries out each step. A step is one change of the world. The facts of the next turn show whether it
 * worked; its result only affects the back-off and the sentence in the status. */
#include "ublkd/reconcile/device_steps.h"
#include "ublkd/reconcile/device_add.h"
#include "ublkd/reconcile/backing/backing_wish.h"
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/backing/device_claim.h"
#include "ublkd/reconcile/disk/device_cpus.h"
#include "ublkd/reconcile/backing/device_faults.h"
#include "ublkd/reconcile/backing/device_image.h"
#include "ublkd/reconcile/disk/device_node.h"
#include "ublkd/reconcile/disk/device_partitions.h"
#include "ublkd/reconcile/disk/device_cdi.h"
#include "ublkd/reconcile/disk/device_private.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/worker/device_preflight.h"
#include "ublkd/reconcile/backing/device_shared.h"
#include "ublkd/reconcile/backing/device_space.h"
#include "ublkd/reconcile/parts/device_step.h"
#include "ublkd/reconcile/disk/device_timeout.h"
#include "ublkd/reconcile/disk/device_holder.h"
#include "ublkd/reconcile/worker/device_worker.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/view/user_request.h"

#include "ublkd/base/clock.h"
#include "ublkd/kernel/kernel_feature.h"
#include "ublkd/model/device_spec_store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- starting ---- */

static void note_spawn(struct managed_device *device, const struct device_record *record, int error)
{
        int misplaced = error == -EBADF ? backing_wish_misplaced(device) : -1;

        if (misplaced < 0)
                device_note(device, REASON_WORKER_NOT_STARTED, "The worker %s cannot be started: %s.",
                        worker_start_program(device->env->config.worker_start), strerror(-error));
        else
                device_note(device, REASON_BACKING_CHANGED,
                        "The kept descriptor of %s belongs to another store of this disk; ublkd starts no "
                        "worker with it and retries. If it stays so, unmount the disk, check that "
                        "PathLeadsToStore is True, then disable and enable the device.",
                        device_spec_store_path(record->spec, (unsigned)misplaced));
}

static void step_spawn(struct managed_device *device, const struct device_record *record)
{
        int r = 0;

        if (device->view.facts.kernel == KERNEL_ABSENT) { /* another program may have deleted the disk */
                device_hide_node(device, record);
                r = device_image_prepare(device, record);
        }
        if (r < 0) {
                device_step_done(device, r);
                return;
        }
        device_faults_begin(device, record);
        r = device_spawn(device, record);
        if (r >= 0)
                device_shared_apply(device, record);
        if (r < 0)
                note_spawn(device, record, r);
        device_step_done(device, r);
}

/* A worker whose program does not know of kept memory would change the disk under it: the next one may have another
 * program. */
static int check_kept(struct managed_device *device, const struct device_record *record)
{
        int r = device_shared_check_kept(device, record->spec->tree);

        if (r < 0)
                device_kill_worker(device, KILL_UNWANTED);
        return r;
}

static int send_go(struct managed_device *device, const struct device_record *record)
{
        struct data_route route =
                ublk_ctl_route(device->view.kernel.flags); /* the flags that the driver has accepted */
        int r = check_kept(device, record);

        if (r < 0)
                return r;
        r = worker_proc_go(device->process.worker, record->number, &route, device->cpus.text);
        device_claim_note_worker(device);
        if (r == -ERANGE)
                device_note(device, REASON_NO_WORKER_UID,
                        "The worker cannot have a uid of its own: /dev/ublkb%d is beyond the range of ublkd; "
                        "start ublkd with --worker-uids for a larger range.",
                        record->number);
        else if (r < 0)
                device_note(device, REASON_WORKER_UNREACHABLE, "The worker does not receive messages: %s.",
                        strerror(-r));
        return r;
}

/* For a new disk: udev must know owner, mode and link before the node appears. */
static int announce_and_go(struct managed_device *device, const struct device_record *record)
{
        int r = device_announce_node(device, record);

        if (r < 0) {
                device_note(device, REASON_RUNTIME_DIRECTORY, "%s cannot be written: %s.",
                        runtime_dir_path(device->env->config.runtime_dir), strerror(-r));
                return r;
        }
        return send_go(device, record);
}

static void go_with_cpus(void *userdata, int result)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);
        bool first = device->step.action == ACTION_SET_PARAMS;

        if (!device->process.worker || !record->spec) {
                device_step_done(device, -ECONNRESET);
                return;
        }
        if (result < 0)
                device_emit(device, EVENT_WARNING, REASON_QUEUES_ANYWHERE,
                        "Asking the kernel for the CPUs of the queues failed: %s; the queues run on any CPU.",
                        strerror(-result));
        device_step_done(device, first ? announce_and_go(device, record) : send_go(device, record));
}

static void learn_cpus(struct managed_device *device, const struct device_record *record)
{
        device_cpus_learn(&device->cpus, device->env->ctl, record->number,
                worker_proc_params(device->process.worker)->queues, go_with_cpus, device);
}

static void on_params_set(void *userdata, int result, const struct kernel_device *kernel _unused_)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);

        result = device_take_result_for_worker(device, record, result);
        if (result >= 0) {
                device_cpus_drop(&device->cpus); /* an earlier disk may have had other queues */
                learn_cpus(device, record);
                return;
        }
        device_step_done(device, result);
}

static void step_set_params(struct managed_device *device, const struct device_record *record)
{
        const struct disk_params *params = worker_proc_params(device->process.worker);
        int r = device_backing_freeze(device, params);

        if (r < 0) {
                device_step_done(device, r);
                return;
        }
        device_command_sent(device,
                ublk_ctl_set_params(
                        device->env->ctl, record->number, params, on_params_set, device, &device->step.call),
                on_params_set);
}

/* A recovered disk keeps its node. Setting up the node comes last: it shares the CPUs with the I/O that has
 * waited. */
static int mark_serving(struct managed_device *device, const struct device_record *record)
{
        int r;

        device_timeout_shorten(device, record);
        r = worker_proc_live(device->process.worker);
        device_recovered(device);
        if (device->step.action != ACTION_END_RECOVERY)
                (void)device_node_changed(device); /* the node may be new */
        device_show_node(device, record);
        device_private_give(device, record);
        device_cdi_write(device, record);
        return r;
}

/* START_DEV and END_USER_RECOVERY have the same end. */
static void on_live(void *userdata, int result, const struct kernel_device *kernel _unused_)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);

        result = device_take_result_for_worker(device, record, result);
        device_node_appeared(device, result >= 0);
        device_step_done(device, result < 0 ? result : mark_serving(device, record));
}

/* Before the disk can have requests that the limits would hold back. */
static void await_timeout(struct managed_device *device, const struct device_record *record, bool is_new)
{
        if (device_timeout_await(device, is_new) && record->spec)
                device_shared_apply(device, record);
}

static void step_start_dev(struct managed_device *device, const struct device_record *record)
{
        await_timeout(device, record, true);
        device_node_await_udev(device);
        device_command_sent(device,
                ublk_ctl_start(device->env->ctl, record->number, worker_proc_pid(device->process.worker),
                        on_live, device, &device->step.call),
                on_live);
}

static void step_mark_serving(struct managed_device *device, const struct device_record *record)
{
        await_timeout(device, record, false);
        device_step_done(device, mark_serving(device, record));
}

/* ---- recovery ---- */

static void on_recovery_begun(void *userdata, int result, const struct kernel_device *kernel _unused_)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);
        int r = 0;

        device_take_result(device, record, result);
        if (result == -EBUSY)
                device_look_for_holder(device, record);
        if (result >= 0 && !device->cpus.text && device->process.worker && record->spec) {
                learn_cpus(device, record); /* of a disk that an earlier supervisor created */
                return;
        }
        if (attempt_may_go(result))
                r = device->process.worker && record->spec ? send_go(device, record) : -ECONNRESET;
        device_step_done(device, r < 0 ? r : result);
}

static bool driver_is_ready(const struct managed_device *device)
{
        return attempt_may_begin(kernel_cancels_late(device->env->config.host->features),
                device->process.down_since, monotonic_now());
}

static void step_begin_recovery(struct managed_device *device, const struct device_record *record)
{
        int r = device_backing_check_geometry(device, record, worker_proc_params(device->process.worker));

        if (r == -ESTALE && device_worker_is_stale(device, record)) {
                device_note_clear(device); /* the next worker tries the later request of the user */
                device_kill_worker(device, KILL_UNWANTED);
                device_step_done(device, 0);
                return;
        }
        if (r >= 0)
                r = device_backing_check(device, record);
        if (r == -ESTALE)
                device_kill_worker(
                        device, KILL_UNWANTED); /* it must not begin to serve later, without a comparison */
        if (r >= 0) { /* a supervisor that has just started does not know the claim yet */
                r = device_claim_take(device);
                if (r < 0)
                        device_kill_worker(device, KILL_UNWANTED);
        }
        if (r >= 0)
                r = check_kept(device, record);
        if (r >= 0 && !driver_is_ready(device)) {
                r = -EBUSY;
                device_look_for_holder(device, record);
        }
        if (r < 0) {
                device_step_done(device, r);
                return;
        }
        device->step.seen_at = monotonic_now(); /* the command looks itself */
        device_command_sent(device,
                ublk_ctl_begin_recovery(device->env->ctl, record->number, device->view.kernel.cookie,
                        on_recovery_begun, device, &device->step.call),
                on_recovery_begun);
}

static void step_end_recovery(struct managed_device *device, const struct device_record *record)
{
        await_timeout(device, record, false);
        device_command_sent(device,
                ublk_ctl_end_recovery(device->env->ctl, record->number, device->view.kernel.cookie,
                        worker_proc_pid(device->process.worker), on_live, device, &device->step.call),
                on_live);
}

/* ---- taking down ---- */

/* The client has learned that the disk has no openers, but one may have come since. A disk without a worker
 * may be held by openers that wait for it, and opening it could wait, too: so a removal waits for the end of a
 * handover (is_put_off() in plan.c). */
static bool may_refuse(const struct managed_device *device, const struct device_record *record)
{
        return device->view.facts.want == WANT_ABSENT && !record->forced
               && device->view.facts.kernel == KERNEL_LIVE
               && device->view.facts.worker == PLAN_WORKER_SERVING;
}

/* If the driver refused, the disk is served as before. */
static void on_refusable_stop(void *userdata, int result, const struct kernel_device *kernel)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);

        if ((result == -EBUSY || result == -ETIME) && record->spec) {
                device_shared_apply(device, record);
                device_private_give(device, record);
                device_cdi_write(device, record);
        }
        device_on_command_done(userdata, result, kernel);
}

/* The driver refuses TRY_STOP_DEV while the disk has an opener. An older driver is asked by an exclusive
 * open, which does not see a non-exclusive opener that came after the search. */
static int stop_unless_used(struct managed_device *device, const struct device_record *record)
{
        struct ublk_ctl *ctl = device->env->ctl;

        if (kernel_has_feature(device->view.kernel.flags, KERNEL_FEATURE_TRY_STOP))
                return ublk_ctl_try_stop(ctl, record->number, on_refusable_stop, device, &device->step.call);
        device_shared_lift(device);
        return ublk_ctl_stop_unheld(ctl, record->number, on_refusable_stop, device, &device->step.call);
}

static void stop_dev(struct managed_device *device)
{
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);
        int r = device_cdi_remove(device, record);

        if (r >= 0)
                r = device_private_shut(device, record);
        if (r < 0) {
                device_step_done(device, r);
                return;
        }
        if (may_refuse(device, record)) {
                r = stop_unless_used(device, record);
        } else {
                device_shared_lift(device);
                device_space_end_waiting(device);
                r = ublk_ctl_stop(
                        device->env->ctl, record->number, device_on_command_done, device, &device->step.call);
        }
        device_command_sent(device, r, device_on_command_done);
}

/* A scan of partitions has the disk open, and the driver would take it for a user. */
static void step_stop_dev(struct managed_device *device, const struct device_record *record _unused_)
{
        device_partitions_leave(device, stop_dev);
}

/* DEL_DEV_ASYNC only begins the deletion: the number is free when the last reference is dropped. */
static void on_deleted(void *userdata, int result, const struct kernel_device *kernel)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);

        if ((result == 0 || result == -ETIMEDOUT) && device->attempt.tries > 0)
                device_note_openers(device, record->number, HOLD_AFTER_DELETE);
        device_on_command_done(userdata, result, kernel);
}

static void step_del_dev(struct managed_device *device, const struct device_record *record)
{
        int r = device_cdi_remove(device, record);

        if (r >= 0)
                r = device_private_remove(device, record);
        if (r < 0) {
                device_step_done(device, r);
                return;
        }
        device_hide_node(device, record);
        device_command_sent(device,
                ublk_ctl_del(device->env->ctl, record->number, on_deleted, device, &device->step.call),
                on_deleted);
}

static void step_stop_worker(struct managed_device *device, const struct device_record *record _unused_)
{
        device_kill_worker(device, device->view.facts.trouble == TROUBLE_STUCK ? KILL_STUCK : KILL_UNWANTED);
        device_step_done(device, 0);
}

/* Without QUIESCE_DEV the worker finishes what it has begun, and leaves. What it has not begun is lost with it: with
 * onCrash "reissue" the kernel hands that to the next worker; otherwise ublkd has refused a restart of a disk with
 * openers. An older worker does not know that, and is killed: what it has begun is replayed. */
static void send_away(struct managed_device *device)
{
        int r = worker_proc_leave(device->process.worker);

        if (r == -EOPNOTSUPP)
                device_kill_worker(device, KILL_TO_REPLACE);
        else if (r < 0)
                device_kill_worker(device, KILL_UNREACHABLE);
        device_step_done(device, 0);
}

static void retire_worker(struct managed_device *device, int result)
{
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);

        if (result < 0) {
                device_step_done(device, result);
                return;
        }
        attempt_handover(&device->attempt, monotonic_now());
        /* Writes that wait for room would never end QUIESCE_DEV: the next worker begins them if possible, else they
         * fail. */
        if (device_space_is_waited_for(device) && device_spec_on_crash(record->spec) == ON_CRASH_REISSUE) {
                send_away(device);
                return;
        }
        device_shared_lift(device); /* until the next worker starts */
        if (device_spec_on_crash(record->spec) != ON_CRASH_REISSUE)
                device_space_end_waiting(device);
        if (kernel_quiesces(device->view.kernel.flags, device->env->config.host->features)) {
                device_command_sent(device,
                        ublk_ctl_quiesce(device->env->ctl, record->number, device_on_command_done, device,
                                &device->step.call),
                        device_on_command_done);
                return;
        }
        send_away(device);
}

static void step_retire_worker(struct managed_device *device, const struct device_record *record)
{
        device_preflight_begin(device, record, retire_worker);
}

/* The answer of the worker arrives between turns. */
static void step_extend_worker(struct managed_device *device, const struct device_record *record)
{
        uint64_t size = device->view.geometry.wanted > device->view.geometry.size
                                ? device->view.geometry.wanted
                                : device->view.geometry.size;
        int r = device_image_grow(device, record, size);

        if (r < 0) {
                device_step_done(device, r);
                return;
        }
        r = device_claim_extend(device, size);
        if (!user_request_equal(device->step.grown_for, user_request_of(record)))
                worker_proc_drop_refusal(device->process.worker);
        device->step.grown_for = user_request_of(record);
        if (r >= 0)
                r = worker_proc_grow(device->process.worker, size);
        if (r < 0 && r != -EBUSY)
                device_note(device, REASON_WORKER_UNREACHABLE, "The worker does not receive messages: %s.",
                        strerror(-r));
        device_step_done(device, r);
}

static void step_grow_disk(struct managed_device *device, const struct device_record *record)
{
        device_command_sent(device,
                ublk_ctl_update_size(device->env->ctl, record->number, device->view.geometry.wanted,
                        device_on_command_done, device, &device->step.call),
                device_on_command_done);
}

void device_steps_run(struct managed_device *device, const struct device_record *record,
        void (*done)(struct managed_device *device, int result))
{
        static void (*const steps[_ACTION_MAX])(struct managed_device *, const struct device_record *) = {
                [ACTION_SPAWN] = step_spawn,
                [ACTION_ADD_DEV] = device_step_add,
                [ACTION_SET_PARAMS] = step_set_params,
                [ACTION_START_DEV] = step_start_dev,
                [ACTION_BEGIN_RECOVERY] = step_begin_recovery,
                [ACTION_END_RECOVERY] = step_end_recovery,
                [ACTION_MARK_SERVING] = step_mark_serving,
                [ACTION_STOP_DEV] = step_stop_dev,
                [ACTION_DEL_DEV] = step_del_dev,
                [ACTION_STOP_WORKER] = step_stop_worker,
                [ACTION_RETIRE_WORKER] = step_retire_worker,
                [ACTION_EXTEND_WORKER] = step_extend_worker,
                [ACTION_GROW_DISK] = step_grow_disk,
        };

        device->step.done = done;
        steps[device->step.action](device, record);
}
