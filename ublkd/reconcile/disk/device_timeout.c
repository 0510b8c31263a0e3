/* SPDX-License-Identifier: MIT */
/* The I/O timeout of a device's disk: a recovery may wait as long for the requests of the dead worker. */
#include "ublkd/reconcile/disk/device_timeout.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"

#include "ublkd/kernel/kernel_feature.h"

#include <string.h>

enum { AFTER_RECOVERY_USEC = 1000 * 1000 };

/* In its unprivileged mode the driver kills the worker at a timeout (ublk_timeout()). */
static bool is_needed(const struct managed_device *device)
{
        const struct reconciler_config *config = &device->env->config;

        return config->disk_timeout && kernel_learns_by_timeout(config->host->features)
               && !(device->view.kernel.flags & ublk_ctl_unprivileged_flag());
}

static bool is_limited(const struct device_record *record)
{
        const struct device_options *options = record->spec ? &record->spec->options : NULL;

        return options
               && (options->limits.read.iops || options->limits.read.bytes_per_sec
                       || options->limits.write.iops || options->limits.write.bytes_per_sec);
}

bool device_timeout_await(struct managed_device *device, bool is_new)
{
        if (is_new || device->timeout.state != TIMEOUT_SET)
                device->timeout.state = is_needed(device) ? TIMEOUT_AWAITED : TIMEOUT_LEFT;
        return device->timeout.state == TIMEOUT_AWAITED;
}

/* One that an earlier ublkd has recovered most likely has the timeout; without limits, other steps are more urgent. */
void device_timeout_shorten(struct managed_device *device, const struct device_record *record)
{
        bool may_wait = device->step.action == ACTION_END_RECOVERY && !is_limited(record);
        int r;

        if (device->timeout.state != TIMEOUT_AWAITED)
                return;
        device->timeout.state = TIMEOUT_ASKED;
        r = disk_timeout_shorten(
                device->env->config.disk_timeout, record->number, may_wait ? AFTER_RECOVERY_USEC : 0);
        if (r < 0)
                device_timeout_done(device, record, r);
}

/* The next turn passes the limits to the worker. After a failure the next recovery tries again; most likely the timeout is set
 * by then, if the kernel only waited, and finding that holds up nothing. */
void device_timeout_done(struct managed_device *device, const struct device_record *record, int error)
{
        if (device->timeout.state != TIMEOUT_ASKED) /* an earlier disk with this number was asked for */
                return;
        device->timeout.state = error < 0 ? TIMEOUT_LEFT : TIMEOUT_SET;
        if (error < 0 && error != -ETIMEDOUT && record->status.disk)
                device_emit(device, EVENT_WARNING, REASON_TIMEOUT_NOT_SET,
                        "/sys/block/ublkb%d/queue/io_timeout cannot be set: %s; a recovery may take 30 s on "
                        "this kernel.",
                        record->number, strerror(-error));
        device_wake(device);
}

bool device_timeout_delays_limits(const struct managed_device *device, const struct device_record *record)
{
        return timeout_is_coming(&device->timeout) && is_limited(record);
}
