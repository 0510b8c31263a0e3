/* SPDX-License-Identifier: MIT */
/* A command that was given up is out of the way: the device that waited for that goes on. */
#include "ublkd/reconcile/managed_device.h"

void devices_released(void *userdata, int number)
{
        struct managed_device *device = reconciler_find_number(userdata, number);

        if (!device)
                return;
        attempt_released(&device->attempt, monotonic_now());
        device_wake(device);
}
