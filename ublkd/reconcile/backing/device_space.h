/* SPDX-License-Identifier: MIT */
/* Reports whether the backing store has room for writes (proto/region_space.h). */
#pragma once

#include "ublkd/reconcile/parts/device_space_part.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Pass onFull of the spec to the worker, if there is one. fd: the region, or -errno. */
void device_space_apply(struct managed_device *device, int fd, const struct device_record *record);
/* Fail the writes that wait for room, before the disk is stopped: stopping waits for them. */
void device_space_end_waiting(const struct managed_device *device);
/* Return whether a write found no room, as read last; then StoreFull was reported. */
bool device_space_is_full(const struct managed_device *device);
/* Return whether there is room again since the last read but one, and that was reported. */
bool device_space_has_ended(const struct managed_device *device);
/* Return whether writes wait for room. */
bool device_space_is_waited_for(const struct managed_device *device);
/* Read it out of the region, look at the room below the file, and report changes. */
void device_space_read(struct managed_device *device, const struct device_record *record);
/* Write the condition for device_publish.c, or leave *ret untouched if there is nothing to report. Return 0 or -ENOMEM. */
int device_space_condition(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
