/* SPDX-License-Identifier: MIT */
/* The region that a device's workers share with the supervisor, and the record beside it. */
#pragma once

#include "ublkd/proto/device_region.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Private to device_shared.c. */
struct device_shared {
        bool unkept; /* its record is not in the runtime directory as it is, which was reported */
};

/* Let limits and busy polling of its worker, if any, follow the spec. */
void device_shared_apply(struct managed_device *device, const struct device_record *record);
/* Lift its limits: its disk is about to be stopped, which waits for all that is held back. */
void device_shared_lift(struct managed_device *device);
/* Its history, to its region and from there. It is shown, and nothing else: no region is no failure. */
void device_shared_keep_history(const struct managed_device *device, const struct region_history *history);
void device_shared_recall_history(const struct managed_device *device, struct region_history *ret);
/* Make sure that its record is in the runtime directory, as the kernel's disk is of no use to a ublkd without a
 * database otherwise. 0 or -errno, which one event reports. */
int device_keep_record(struct managed_device *device);
/* Remove the region that its workers shared: with its record. */
void device_shared_forget(struct managed_device *device);
