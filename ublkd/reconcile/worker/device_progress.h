/* SPDX-License-Identifier: MIT */
/* Looks from time to time whether the requests of a disk end, and replaces a worker that hangs (plan/progress.h). A
 * look reads some small files and never waits; it does not disturb the worker. */
#pragma once

#include "ublkd/reconcile/parts/device_progress_part.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Begin to look, or go on, as `recovery.hangAfter` says. The worker serves. */
void device_progress_watch(struct managed_device *device, const struct device_record *record);
/* Stop to look: the worker does not serve any more. */
void device_progress_end(struct managed_device *device);
/* Free what it owns. */
void device_progress_drop(struct managed_device *device);
/* Write the condition for device_publish.c, or leave *ret untouched if requests end. Return 0 or -ENOMEM. */
int device_progress_condition(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
