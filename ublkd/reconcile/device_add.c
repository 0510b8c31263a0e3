/* SPDX-License-Identifier: MIT */
/* The step ADD_DEV: choose a number, write it into the record, create the disk. */
#include "ublkd/reconcile/device_add.h"
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/backing/device_claim.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/backing/device_shared.h"
#include "ublkd/reconcile/parts/device_step.h"
#include "ublkd/reconcile/worker/device_worker.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/base/clock.h"
#include "ublkd/reconcile/view/spec_features.h"

#include "ublkd/driver/device_route.h"
#include "ublkd/model/device_cookie.h"

#include <string.h>

/* The driver drops unknown flags without an error. Sending them again would give the same answer. */
static void on_added(void *userdata, int result, const struct kernel_device *kernel)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);

        if (kernel && record->spec)
                device->step.dropped_flags = spec_wanted_flags(record->spec) & ~kernel->flags;
        device_on_command_done(userdata, attempt_add_result(result, device->view.foreign), kernel);
}

/* Write the record into the runtime directory: without it the disk would be lost with the database. */
static bool is_kept(struct managed_device *device)
{
        int r = device_keep_record(device);

        if (r >= 0)
                return true;
        device_note(device, REASON_RUNTIME_DIRECTORY, "The record of the device cannot be written to %s: %s.",
                runtime_dir_path(device->env->config.runtime_dir), strerror(-r));
        device_step_done(device, r);
        return false;
}

static void add_device(struct managed_device *device, const struct device_record *record)
{
        const struct disk_params *params = worker_proc_params(device->process.worker);
        uint64_t features = spec_features(record->spec, device->env->config.host->features);
        enum kernel_recovery recovery = spec_wanted_recovery(record->spec);
        struct data_route route = device_route_choose(
                &(const struct data_route_wish){
                        .path = (enum data_path)record->spec->options.data_path,
                        .fastest = params->fastest,
                        .queue_depth = params->queue_depth,
                        .may_batch = recovery != KERNEL_RECOVERY_QUEUE,
                },
                features);
        struct kernel_device_request request = {
                .number = record->number,
                .cookie = device_cookie(record->uid, record->epoch),
                .flags = spec_wanted_flags(record->spec) | ublk_ctl_route_flags(&route)
                         | ublk_ctl_extra_flags(recovery, route.batch, features),
                .queues = params->queues,
                .queue_depth = params->queue_depth,
                .max_io_size = params->max_io_size,
                .unprivileged = spec_is_unprivileged(record->spec),
                .uid = (uid_t)record->spec->options.owner.uid,
                .gid = (gid_t)record->spec->options.owner.gid, /* which a disk in unprivileged mode has */
        };

        if (!is_kept(device))
                return;
        device_command_sent(device,
                ublk_ctl_add(device->env->ctl, &request, on_added, device, &device->step.call), on_added);
}

static bool number_is_reserved(const struct managed_device *device, int number)
{
        return device_store_number_owner(device->env->config.store, number, device->id.name);
}

/* Store the number before the command: ublkd must recognise the disk after a crash. */
static void take_number(struct managed_device *device, int number)
{
        struct device_store *store = device->env->config.store;
        int r = device_store_assign_number(store, device->id.name, number);

        if (r < 0) {
                device_note(device, REASON_STORE_FAILED,
                        "The number %d cannot be stored in the database: %s.", number, strerror(-r));
                device_step_done(device, r);
                return;
        }
        device->view.foreign = false; /* that was about the last number */
        add_device(device, device_store_get(store, device->id.name));
}

static void try_candidate(struct managed_device *device);

static void on_candidate(void *userdata, int result, const struct kernel_device *kernel _unused_)
{
        struct managed_device *device = userdata;

        device->step.call = NULL;
        if (number_is_reserved(device, device->step.candidate)) { /* another device took it first */
                try_candidate(device);
                return;
        }
        if (result == -ENODEV) {
                take_number(device, device->step.candidate);
                return;
        }
        if (result < 0) {
                device_note(device, REASON_CONTROL_PLANE,
                        "Asking the kernel whether /dev/ublkb%d is free failed: %s.", device->step.candidate,
                        strerror(-result));
                device_step_done(device, result);
                return;
        }
        device->step.candidate++;
        try_candidate(device);
}

static void try_candidate(struct managed_device *device)
{
        int r = device_store_free_number(
                device->env->config.store, device->step.candidate, device->id.name, &device->step.candidate);

        if (r < 0) {
                device_note(
                        device, REASON_STORE_FAILED, "A kernel number cannot be chosen: %s.", strerror(-r));
                device_step_done(device, r);
                return;
        }
        device_command_sent(device,
                ublk_ctl_get_info(
                        device->env->ctl, device->step.candidate, on_candidate, device, &device->step.call),
                on_candidate);
}

void device_step_add(struct managed_device *device, const struct device_record *record)
{
        int64_t wanted = record->spec->options.id;
        /* Another server took the number between the question and ADD_DEV; no client has seen it yet. */
        bool snatched = device->view.foreign && record->number == device->step.candidate;
        int r = device_claim_take(device);

        if (r < 0)
                device_kill_worker(device, KILL_UNWANTED);
        else
                r = device_backing_take(device, record);
        if (r == -ESTALE)
                device_kill_worker(device, KILL_UNWANTED);
        if (r < 0) {
                device_step_done(device, r);
        } else if (((wanted >= 0 && wanted != record->number) || snatched)
                   && attempt_is_unsure(&device->attempt, monotonic_now())) {
                device_note(device, REASON_NUMBER_UNSURE,
                        "The kernel did not answer the request to create /dev/ublkb%d in time, and may still "
                        "create it; ublkd chooses another number when that can no longer happen.",
                        record->number);
                device_step_done(device, -EAGAIN);
        } else if (wanted >= 0 && wanted != record->number) {
                take_number(device, (int)wanted);
        } else if (record->number >= 0 && !snatched) {
                add_device(device, record);
        } else {
                device->step.candidate = 0;
                try_candidate(device);
        }
}
