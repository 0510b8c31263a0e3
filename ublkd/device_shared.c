/* The region that a device's workers share with the supervisor, seen from the device. */
#include "ublkd/managed_device.h"

void device_shared_forget(struct managed_device *device)
{
        /* What cannot be removed is gone with the boot, and no other device has its uid. */
        (void)runtime_dir_forget_region(device->reconciler->config.runtime_dir, device->uid);
}
