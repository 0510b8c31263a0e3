/* SPDX-License-Identifier: MIT */
/* The de-duplicating queue of devices that are due for a turn. */
#include "ublkd/reconcile/parts/reconciler_queue.h"
#include "ublkd/reconcile/parts/managed_device.h"

void device_wake(struct managed_device *device)
{
        struct reconciler *reconciler = device->reconciler;

        if (device->turn.state != TURN_IDLE) {
                device->turn.again = device->turn.state != TURN_QUEUED;
                return;
        }
        device->turn.state = TURN_QUEUED;
        TAILQ_INSERT_TAIL(&reconciler->queue.devices, device, turn.of_queue);
        reconciler->queue.waiting++;
        (void)sd_event_source_set_enabled(
                reconciler->queue.run, SD_EVENT_ON); /* fails only for a dead source */
}

struct managed_device *reconciler_queue_pop(struct reconciler *reconciler)
{
        struct managed_device *device = TAILQ_FIRST(&reconciler->queue.devices);

        if (device)
                reconciler_queue_remove(device);
        return device;
}

void reconciler_queue_remove(struct managed_device *device)
{
        struct reconciler *reconciler = device->reconciler;

        if (device->turn.state != TURN_QUEUED)
                return;
        TAILQ_REMOVE(&reconciler->queue.devices, device, turn.of_queue);
        reconciler->queue.waiting--;
        device->turn.state = TURN_IDLE;
}
