/* SPDX-License-Identifier: MIT */
/* Looks who has the queues of a disk that waits for its recovery. */
#include "ublkd/reconcile/disk/device_holder.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include "ublkd/base/clock.h"
#include "ublkd/disks/disk_stat.h"
#include "ublkd/driver/char_device.h"
#include "ublkd/kernel/kernel_feature.h"

/* Return whether all tags of a queue may be in flight: then the driver learns of a death from their timeout. */
static bool may_be_full(const struct managed_device *device, const struct device_record *record)
{
        const struct progress_places *places = device->env->config.progress_places;
        const char *sys = places ? places->sys : "/sys";
        struct disk_stat stat;

        if (!disk_stat_is_kept(sys, record->number) || disk_stat_read(sys, record->number, &stat) < 0)
                return true;
        return stat.in_flight + 1 >= device->view.kernel.queue_depth; /* and a flush, which is not counted */
}

/* Files of /sys are slow to open, and every try of a recovery comes here: the clock is asked first. */
static bool is_overdue(const struct managed_device *device, const struct device_record *record, uint64_t now)
{
        const struct attempt *attempt = &device->attempt;

        return attempt_is_overdue(attempt, false, now)
               && (attempt_is_overdue(attempt, true, now) || !may_be_full(device, record));
}

void device_look_for_holder(struct managed_device *device, const struct device_record *record)
{
        uint64_t now = monotonic_now();

        if (!kernel_cancels_late(device->env->config.host->features)
                || device->view.kernel.state != KERNEL_STATE_LIVE || !is_overdue(device, record, now))
                return;
        if (char_device_look(record->number) == CHAR_DEVICE_HELD) {
                attempt_held(&device->attempt);
                return;
        }
        attempt_unheld(&device->attempt, now);
        if (device->attempt.unnoticed)
                device_emit(device, EVENT_WARNING, REASON_QUEUES_LOST,
                        "/dev/ublkb%d went live after its queues were taken from the worker: another "
                        "program stopped or deleted it, or the worker died at that moment. This driver does "
                        "not notice that. ublkd makes the disk again, and waiting requests fail.",
                        record->number);
}
