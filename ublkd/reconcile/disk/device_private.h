/* SPDX-License-Identifier: MIT */
/* The private node of a tenant's disk: made when the disk is served, shut before it stops, removed before it is deleted.
 * The kernel gives the number of a disk to another disk later, and the node would open that one. A device without a
 * tenant has none. */
#pragma once

#include "ublkd/reconcile/parts/device_private_part.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Make the node of a disk that is served, or open it again. A failure makes an event, and the next call tries again. */
void device_private_give(struct managed_device *device, const struct device_record *record);
/* Shut the node: before the disk stops. Return 0; -errno, with a note: the disk must stay. */
int device_private_shut(struct managed_device *device, const struct device_record *record);
/* Remove the node: before the disk is deleted. Return as device_private_shut(). */
int device_private_remove(struct managed_device *device, const struct device_record *record);
/* Remove the node of a disk that is gone, which another program may have deleted. */
void device_private_follow(struct managed_device *device, const struct device_record *record);
/* Write the path of the node, if it is open, into the status. */
void device_private_show(const struct managed_device *device, struct device_status *status);
