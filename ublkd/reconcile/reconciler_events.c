/* SPDX-License-Identifier: MIT */
/* Events of other rooms about a disk, by its number: udev, swap, the I/O timeout, the control plane. */
#include "ublkd/reconcile/reconciler_events.h"
#include "ublkd/reconcile/disk/device_node.h"
#include "ublkd/reconcile/disk/device_timeout.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_devices.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"
#include "ublkd/base/clock.h"

/* Queue a turn, which asks the kernel whether the disk still belongs to the device. */
void reconciler_disk_changed(struct reconciler *reconciler, int number)
{
        struct managed_device *device = reconciler_find_number(reconciler, number);
        bool waited = device && device_node_udev_done(device);
        bool was_shown = device && device_node_changed(device);

        if (waited || was_shown)
                device_wake(device);
}

/* Queue a turn, which stores the condition. */
void reconciler_swap_changed(void *userdata, int number)
{
        struct managed_device *device = reconciler_find_number(userdata, number);

        if (device)
                device_wake(device);
}

void reconciler_timeout_done(struct reconciler *reconciler, int number, int error)
{
        const struct device_record *record = device_store_of_number(reconciler->env.config.store, number);
        struct managed_device *device = record ? reconciler_find(reconciler, record->name) : NULL;

        if (device)
                device_timeout_done(device, record, error);
}

void reconciler_number_released(void *userdata, int number)
{
        struct managed_device *device = reconciler_find_number(userdata, number);

        if (!device)
                return;
        attempt_released(&device->attempt, monotonic_now());
        device_wake(device);
}
