/* SPDX-License-Identifier: MIT */
/* The de-duplicating queue of devices that are due for a turn. */
#include "ublkd/reconcile/managed_device.h"

void device_wake(struct managed_device *device)
{
        struct reconciler *reconciler = device->reconciler;

        if (device->turn != TURN_IDLE) {
                device->again = device->turn != TURN_QUEUED;
                return;
        }
        device->turn = TURN_QUEUED;
        device->next_in_queue = NULL;
        *reconciler->queue_tail = device;
        reconciler->queue_tail = &device->next_in_queue;
        (void)sd_event_source_set_enabled(reconciler->run, SD_EVENT_ON); /* fails only for a dead source */
}

struct managed_device *reconciler_queue_pop(struct reconciler *reconciler)
{
        struct managed_device *device = reconciler->queue_head;

        if (!device)
                return NULL;
        reconciler->queue_head = device->next_in_queue;
        if (!reconciler->queue_head)
                reconciler->queue_tail = &reconciler->queue_head;
        device->next_in_queue = NULL;
        device->turn = TURN_IDLE;
        return device;
}

void reconciler_queue_remove(struct managed_device *device)
{
        struct reconciler *reconciler = device->reconciler;

        for (struct managed_device **at = &reconciler->queue_head; *at; at = &(*at)->next_in_queue)
                if (*at == device) {
                        *at = device->next_in_queue;
                        if (!*at)
                                reconciler->queue_tail = at;
                        return;
                }
}
