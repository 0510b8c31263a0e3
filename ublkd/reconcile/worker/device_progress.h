/* SPDX-License-Identifier: MIT */
/* Looks from time to time whether the requests of a disk end, and replaces a worker that hangs (plan/progress.h). A
 * look reads some small files and never waits; it does not disturb the worker. */
#pragma once

#include "ublkd/plan/progress.h"
#include "ublkd/store/device_store.h"

#include <systemd/sd-event.h>

struct managed_device;

/* Private to device_progress.c; zeroed: nothing is looked at. */
struct device_progress {
        sd_event_source *timer; /* NULL: no worker has served yet */
        uint64_t patience;      /* that it was set for */
        bool watched;           /* the worker of `memory` serves */
        struct progress_memory memory;
        enum progress shown;
        uint64_t shown_since; /* CLOCK_REALTIME, microseconds */
        /* A worker that did not know of its requests was killed when so many had ended. Another one that does not know
         * of them either is not to blame. */
        bool was_unaware;
        uint64_t unaware_ended;
};

/* Begin to look, or go on, as `recovery.hangAfter` says. The worker serves. */
void device_progress_watch(struct managed_device *device, const struct device_record *record);
/* Stop to look: the worker does not serve any more. */
void device_progress_end(struct managed_device *device);
/* Free what it owns. */
void device_progress_drop(struct managed_device *device);
/* Write the condition for device_publish.c, or leave *ret untouched if requests end. Return 0 or -ENOMEM. */
int device_progress_condition(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
