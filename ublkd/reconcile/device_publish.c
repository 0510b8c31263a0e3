/* SPDX-License-Identifier: MIT */
/* Makes the status of a device, from the view of a turn (device_report.c) and from each part of the device,
 * and stores it. */
#include "ublkd/reconcile/device_publish.h"
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/backing/device_errors.h"
#include "ublkd/reconcile/backing/device_faults.h"
#include "ublkd/reconcile/backing/device_shared.h"
#include "ublkd/reconcile/disk/device_node.h"
#include "ublkd/reconcile/disk/device_partitions.h"
#include "ublkd/reconcile/disk/device_private.h"
#include "ublkd/reconcile/disk/device_timeout.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/backing/device_path.h"
#include "ublkd/reconcile/worker/device_preflight.h"
#include "ublkd/reconcile/backing/device_space.h"
#include "ublkd/reconcile/parts/device_step.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/worker/device_group.h"
#include "ublkd/reconcile/worker/device_program.h"
#include "ublkd/reconcile/worker/device_progress.h"
#include "ublkd/reconcile/view/device_report.h"
#include "ublkd/base/clock.h"
#include "ublkd/reconcile/view/source_condition.h"
#include "ublkd/reconcile/view/stable_path.h"
#include "ublkd/reconcile/view/swap_condition.h"
#include "ublkd/reconcile/view/turn_view.h"
#include "ublkd/reconcile/view/user_request.h"

#include "ublkd/base/sentence.h"

static int stable_path(
        const struct managed_device *device, const struct device_record *record, struct device_condition *ret)
{
        const struct disk_params *params =
                device->process.worker ? worker_proc_params(device->process.worker) : NULL;

        return stable_path_condition(record, params, device->view.facts.kernel, ret);
}

static int source(const struct managed_device *device _unused_, const struct device_record *record,
        struct device_condition *ret)
{
        return source_condition(record, ret);
}

static int swap_safe(const struct managed_device *device, const struct device_record *record _unused_,
        struct device_condition *ret)
{
        int number = turn_view_disk(&device->view);

        return swap_condition(number, swap_watch_has(device->env->swap_watch, number),
                ublk_ctl_route(device->view.kernel.flags).path, ret);
}

/* Conditions with an event. */
static const enum condition_type reported[] = {CONDITION_STABLE_PATH, CONDITION_SWAP_SAFE};

/* Make an event before such a condition becomes False, or gets another message. */
static void report(const struct managed_device *device, const struct device_conditions *before,
        const struct device_conditions *now)
{
        for (size_t i = 0; i < ARRAY_SIZE(reported); i++) {
                const struct device_condition *condition = &now->of[reported[i]];

                if (condition->status == CONDITION_FALSE
                        && !sentence_equal(before->of[reported[i]].message, condition->message))
                        device_emit(device, EVENT_WARNING, condition->reason, "%s", condition->message);
        }
}

/* Each function writes one condition beside Ready, or leaves *ret untouched if it does not apply. Returns 0
 * or -ENOMEM. */
static int (*const writers[_CONDITION_MAX])(const struct managed_device *device,
        const struct device_record *record, struct device_condition *ret) = {
        [CONDITION_PATH_LEADS_TO_STORE] = device_path_condition,
        [CONDITION_DURABLE] = device_faults_durable,
        [CONDITION_BACKING_WHOLE] = device_faults_whole,
        [CONDITION_SPACE] = device_space_condition,
        [CONDITION_ERROR_FREE] = device_errors_condition,
        [CONDITION_PROGRESS] = device_progress_condition,
        [CONDITION_RESOURCES] = device_group_condition,
        [CONDITION_STABLE_PATH] = stable_path,
        [CONDITION_SWAP_SAFE] = swap_safe,
        [CONDITION_PARTITIONS] = device_partitions_condition,
        [CONDITION_SOURCE] = source,
        [CONDITION_NEEDS_RESTART] = device_program_condition,
};

static int fill_conditions(const struct managed_device *device, const struct device_record *record,
        struct device_conditions *conditions)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < _CONDITION_MAX; i++)
                if (writers[i])
                        r = writers[i](device, record, &conditions->of[i]);
        return r;
}

static struct report_worker worker_of(const struct worker_proc *worker)
{
        const struct disk_params *params = worker_proc_params(worker);

        return (struct report_worker){
                .pid = worker_proc_pid(worker),
                .started_at = worker_proc_started_at(worker),
                .version = worker_proc_version(worker),
                .fastest = params ? params->fastest : DATA_PATH_AUTO,
        };
}

/* Return why the disk could not grow to the size wanted now; a refusal of another size does not count. */
static const struct problem *growth_refusal(
        const struct managed_device *device, const struct device_record *record)
{
        const struct problem_list *refusal =
                device->process.worker ? worker_proc_refusal(device->process.worker) : NULL;

        return refusal && refusal->count > 0
                               && user_request_equal(device->step.grown_for, user_request_of(record))
                       ? &refusal->items[0]
                       : NULL;
}

static int make_status(const struct managed_device *device, const struct device_record *record,
        uint64_t next_try, struct device_status *ret)
{
        struct report_worker worker =
                device->process.worker ? worker_of(device->process.worker) : (struct report_worker){};
        const struct problem *refusal = growth_refusal(device, record);
        enum condition_reason restart_reason = REASON_NONE;
        const char *restart_refusal = device_preflight_refusal(device, record, &restart_reason);
        int r = device_report(
                &(const struct report_view){
                        .turn = &device->view,
                        .attempt = &device->attempt,
                        .note = &device->note,
                        .history = &device->process.history,
                        .host_problems = &device->env->config.host->problems,
                        .worker = device->process.worker ? &worker : NULL,
                        .growth_refusal = refusal ? refusal->detail : NULL,
                        .growth_reason = refusal ? reason_from_worker(refusal->reason, NULL) : REASON_NONE,
                        .restart_refusal = restart_refusal,
                        .restart_reason = restart_reason,
                        .features = device_features(device),
                        .allows_tests = device->env->config.allow_fault_target,
                        .action = device->step.action,
                        .has_control = device->env->ctl,
                        .unseen = device->first.unseen,
                        .backing_changed = device->backing.changed,
                        .awaits_udev = device_node_awaits_udev(device),
                        .awaits_limits = device_timeout_delays_limits(device, record),
                        .next_try = next_try,
                        .now = monotonic_now(),
                        .wall_msec = (uint64_t)clock_msec(CLOCK_REALTIME),
                },
                record, ret);

        if (r >= 0)
                r = device_backing_show(device, record, ret);
        device_private_show(device, ret);
        device_faults_list(device, &ret->faults);
        ret->errors = *device_errors_list(device);
        ret->kept_bytes = device_shared_kept_bytes(device, record);
        return r < 0 ? r : fill_conditions(device, record, &ret->conditions);
}

int device_publish(const struct managed_device *device, const struct device_record *record, uint64_t next_try)
{
        struct device_status status;
        int r = make_status(device, record, next_try, &status);

        if (r >= 0)
                report(device, &record->status.conditions, &status.conditions);
        if (r >= 0)
                r = device_store_set_status(device->env->config.store, device->id.name, &status);
        device_status_clear(&status);
        return r;
}
