/* SPDX-License-Identifier: MIT */
/* A command that was given up is out of the way: the device that waited for that goes on. */
#include "ublkd/reconcile/managed_device.h"

void devices_released(void *userdata, int number)
{
        struct reconciler *reconciler = userdata;

        for (size_t i = 0; i < reconciler->count; i++) {
                struct managed_device *device = reconciler->devices[i];
                const struct device_record *record = device_store_get(reconciler->config.store, device->name);

                if (!record || record->number != number)
                        continue;
                attempt_released(&device->attempt, monotonic_now());
                device_wake(device);
        }
}
