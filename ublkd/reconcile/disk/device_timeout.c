/* SPDX-License-Identifier: MIT */
/* The I/O timeout of a device's disk: a recovery may wait as long for the requests of the dead worker. */
#include "ublkd/reconcile/disk/device_timeout.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include <string.h>

enum { AFTER_RECOVERY_USEC = 1000 * 1000 };

void device_timeout_failed(const struct managed_device *device, const struct device_record *record, int error)
{
        if (record->status.disk)
                device_emit(device, EVENT_WARNING, REASON_TIMEOUT_NOT_SET,
                        "/sys/block/ublkb%d/queue/io_timeout cannot be set: %s; a recovery may take 30 s on "
                        "this kernel.",
                        record->number, strerror(-error));
}

/* Skip a recovered disk: it most likely has the timeout, and other steps are more urgent. In its unprivileged mode the driver
 * kills the worker at a timeout (ublk_timeout()). */
void device_timeout_shorten(const struct managed_device *device, const struct device_record *record)
{
        struct disk_timeout *timeout = device->env->config.disk_timeout;
        uint64_t delay = device->step.action == ACTION_END_RECOVERY ? AFTER_RECOVERY_USEC : 0;
        bool is_killed = device->view.kernel.flags & ublk_ctl_unprivileged_flag();
        int r = timeout && !is_killed ? disk_timeout_shorten(timeout, record->number, delay) : 0;

        if (r < 0)
                device_timeout_failed(device, record, r);
}
