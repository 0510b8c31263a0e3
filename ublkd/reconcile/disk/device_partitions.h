/* SPDX-License-Identifier: MIT */
/* The partitions of a device's disk: found and shown, or not, as the spec says. No turn waits for that. */
#pragma once

#include "ublkd/model/device_condition.h"
#include "ublkd/reconcile/parts/device_partitions_part.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Begin a scan of a disk that is served, if one is due. Return when the device needs another turn for it; UINT64_MAX:
 * none. */
uint64_t device_partitions_follow(struct managed_device *device, const struct device_record *record);
/* Drop what is known of a disk that is gone. */
void device_partitions_reset(struct managed_device *device);
/* End a scan before the disk is stopped, and call `then` as soon as no process of the scan has it open: at once, or
 * from the loop; after two seconds in any case. */
void device_partitions_leave(struct managed_device *device, void (*then)(struct managed_device *device));
/* Write the condition of partitions that are not as wanted. Return 0 or -ENOMEM. */
int device_partitions_condition(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
/* Free what it owns. */
void device_partitions_drop(struct managed_device *device);
