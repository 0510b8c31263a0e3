/* SPDX-License-Identifier: MIT */
/* Notices that the driver releases a disk whose worker has died. */
#include "ublkd/reconcile/disk/device_release.h"
#include "ublkd/base/clock.h"
#include "ublkd/driver/char_device.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"

/* The recovery has begun: ublkd waits for the worker now. */
static bool has_begun(const struct managed_device *device)
{
        return device->step.action == ACTION_BEGIN_RECOVERY && attempt_succeeded(&device->attempt);
}

static int on_closed(sd_event_source *source, const struct inotify_event *event, void *userdata)
{
        struct managed_device *device = userdata;

        (void)source;
        (void)event;
        device->release.closed = sd_event_source_disable_unref(device->release.closed);
        attempt_closed(&device->attempt, monotonic_now());
        if (!has_begun(device))
                device_wake(device);
        return 0;
}

static bool is_awaited(const struct plan_facts *facts)
{
        bool has_disk = facts->kernel == KERNEL_LIVE || facts->kernel == KERNEL_DOWN;

        return has_disk
               && (facts->worker == PLAN_WORKER_NONE || facts->worker == PLAN_WORKER_STARTING
                       || facts->worker == PLAN_WORKER_PARAMS);
}

void device_release_follow(struct managed_device *device, const struct device_record *record)
{
        if (!is_awaited(&device->view.facts)) {
                device_release_drop(device);
                return;
        }
        if (device->release.watched)
                return;
        device->release.watched = true;
        /* without it, ublkd asks the driver */
        attempt_watch(&device->attempt, char_device_watch(device->env->config.event, record->number,
                                                on_closed, device, &device->release.closed)
                                                >= 0);
}

void device_release_drop(struct managed_device *device)
{
        attempt_watch(&device->attempt, false);
        device->release.closed = sd_event_source_disable_unref(device->release.closed);
        device->release.watched = false;
}
