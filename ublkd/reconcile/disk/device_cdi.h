/* SPDX-License-Identifier: MIT */
/* The description of a disk for container engines: written when the disk is served, removed before it stops. The kernel
 * gives the number of a disk to another disk later, and a container would get that one. */
#pragma once

#include "ublkd/reconcile/parts/device_cdi_part.h"
#include "ublkd/store/device_store.h"

#include <stdbool.h>

struct managed_device;

/* Write the file of a disk that is served, after its nodes. A failure makes an event, and the next call tries again. */
void device_cdi_write(struct managed_device *device, const struct device_record *record);
/* Remove the file: before the disk stops. Return 0; -errno, with a note: the disk must stay. */
int device_cdi_remove(struct managed_device *device, const struct device_record *record);
/* Remove the file of a disk that does not serve any more, which another program may have stopped. */
void device_cdi_follow(struct managed_device *device, const struct device_record *record);
/* Return whether the last call of device_cdi_follow() could not remove it: the record must stay, which names the file. */
bool device_cdi_is_left(const struct managed_device *device);
