/* SPDX-License-Identifier: MIT */
/* What is wanted of a device, from its record and the facts of a turn. */
#include "ublkd/reconcile/device_wish.h"
#include "ublkd/reconcile/device_ability.h"
#include "ublkd/reconcile/device_faults.h"
#include "ublkd/reconcile/device_geometry.h"
#include "ublkd/reconcile/device_trial.h"
#include "ublkd/reconcile/device_worker.h"
#include "ublkd/reconcile/managed_device.h"

#include "ublkd/base/kernel_feature.h"

#include <string.h>

/* I/O waits from the moment that a disk is seen without a worker that serves it. FAIL_IO fails it instead. */
static void note_loss(struct managed_device *device, uint64_t now)
{
        bool waits = device->facts.kernel == KERNEL_DOWN && device->kernel.state != KERNEL_STATE_FAIL_IO;

        if (!waits)
                device->lost_since = 0;
        else if (device->lost_since == 0)
                device->lost_since = now;
}

uint64_t device_features(const struct managed_device *device)
{
        return device->reconciler->config.host->features & ~device->dropped_flags;
}

struct plan_wish device_wish(struct managed_device *device, const struct device_record *record, uint64_t now)
{
        const struct device_options *options = record->spec ? &record->spec->options : NULL;
        const struct disk_params *params = device->worker ? worker_proc_params(device->worker) : NULL;
        bool has_disk = device->facts.kernel == KERNEL_LIVE || device->facts.kernel == KERNEL_DOWN;
        bool present = device->facts.kernel != KERNEL_ABSENT;
        bool unready = device->facts.kernel == KERNEL_ABSENT || device->facts.kernel == KERNEL_ADDED;

        note_loss(device, now);
        device_geometry_read(&device->geometry, has_disk ? device->kernel.number : -1);
        device_faults_accept(device, record);
        device->geometry.wanted = options ? device_geometry_wanted((uint64_t)options->size, params) : 0;
        return (struct plan_wish){
                .deleting = record->deleting,
                .enabled = options && options->enabled
                           && !(unready && spec_unsupported(record->spec, device_features(device))),
                .kernel_is_old = present && device_cookie_epoch(device->kernel.cookie) != record->epoch,
                .worker_is_old = device_worker_is_old(device, record),
                .worker_is_outdated = device->worker && worker_proc_restart(device->worker) != record->restart
                                      && !device_trial_refusal(device, record),
                .manual = options && options->recovery.trigger == TRIGGER_MANUAL,
                .held = strcmp(record->held_boot, device->reconciler->boot_id) == 0,
                .recover_requested = record->recover_requested,
                .kernel = device->facts.kernel,
                .worker = device->facts.worker,
                .size_wanted = device->geometry.wanted,
                .size_of_worker = params ? params->size : 0,
                .size_of_disk =
                        kernel_can(device->kernel.flags, KERNEL_ABILITY_GROW) ? device->geometry.size : 0,
                .lost_since = device->lost_since,
                .give_up_after = options ? options->recovery.give_up_after : 0,
                .now = now,
        };
}
