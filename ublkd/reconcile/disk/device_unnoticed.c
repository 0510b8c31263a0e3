/* SPDX-License-Identifier: MIT */
/* Finds the disk whose dead worker the driver will never notice. */
#include "ublkd/reconcile/disk/device_unnoticed.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include "ublkd/base/clock.h"
#include "ublkd/disks/disk_stat.h"
#include "ublkd/driver/char_device.h"

/* Return whether all tags of a queue may be in flight: then the driver learns of a death from their timeout. */
static bool may_be_full(const struct managed_device *device, const struct device_record *record)
{
        const struct progress_places *places = device->env->config.progress_places;
        struct disk_stat stat;

        if (disk_stat_read(places ? places->sys : "/sys", record->number, &stat) < 0)
                return true;
        return stat.in_flight + 1 >= device->view.kernel.queue_depth; /* and a flush, which is not counted */
}

bool device_is_unnoticed(const struct managed_device *device, const struct device_record *record)
{
        if (device->view.kernel.state != KERNEL_STATE_LIVE
                || !attempt_is_overdue(&device->attempt, may_be_full(device, record), monotonic_now())
                || char_device_look(record->number) == CHAR_DEVICE_HELD)
                return false;
        device_emit(device, EVENT_WARNING, REASON_QUEUES_LOST,
                "Another program stopped or deleted /dev/ublkb%d before it was live, and no worker can get "
                "its queues "
                "any more; ublkd makes the disk again, and requests that wait for it fail.",
                record->number);
        return true;
}
