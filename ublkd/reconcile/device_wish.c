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
#include "ublkd/model/device_cookie.h"

#include <string.h>

uint64_t device_features(const struct managed_device *device)
{
        return device->env->config.host->features & ~device->step.dropped_flags;
}

struct plan_wish device_wish(struct managed_device *device, const struct device_record *record, uint64_t now)
{
        const struct device_options *options = record->spec ? &record->spec->options : NULL;
        const struct disk_params *params =
                device->process.worker ? worker_proc_params(device->process.worker) : NULL;
        bool has_disk = device->view.facts.kernel == KERNEL_LIVE || device->view.facts.kernel == KERNEL_DOWN;
        bool present = device->view.facts.kernel != KERNEL_ABSENT;
        bool unready =
                device->view.facts.kernel == KERNEL_ABSENT || device->view.facts.kernel == KERNEL_ADDED;

        device_note_loss(device, now);
        device_geometry_read(&device->view.geometry, has_disk ? device->view.kernel.number : -1);
        device_faults_accept(device, record);
        device->view.geometry.wanted = options ? device_geometry_wanted((uint64_t)options->size, params) : 0;
        return (struct plan_wish){
                .deleting = record->deleting,
                .enabled = options && options->enabled
                           && !(unready && spec_unsupported(record->spec, device_features(device))),
                .kernel_is_old = present && device_cookie_epoch(device->view.kernel.cookie) != record->epoch,
                .worker_is_old = device_worker_is_old(device, record),
                .worker_is_outdated = device->process.worker
                                      && worker_proc_restart(device->process.worker) != record->restart
                                      && !device_trial_refusal(device, record),
                .manual = options && options->recovery.trigger == TRIGGER_MANUAL,
                .held = strcmp(record->held_boot, device->env->boot_id) == 0,
                .recover_requested = record->recover_requested,
                .kernel = device->view.facts.kernel,
                .worker = device->view.facts.worker,
                .size_wanted = device->view.geometry.wanted,
                .size_of_worker = params ? params->size : 0,
                .size_of_disk = kernel_can(device->view.kernel.flags, KERNEL_ABILITY_GROW)
                                        ? device->view.geometry.size
                                        : 0,
                .lost_since = device->process.lost_since,
                .give_up_after = options ? options->recovery.give_up_after : 0,
                .now = now,
        };
}
