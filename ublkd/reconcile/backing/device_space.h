/* SPDX-License-Identifier: MIT */
/* Reports whether the backing store has room for writes (proto/region_space.h). */
#pragma once

#include "ublkd/store/device_store.h"

struct managed_device;

/* Private to device_space.c; as read from its region last. */
struct device_space {
        uint64_t full_since; /* its store has no room; CLOCK_REALTIME; 0: it has */
        bool has_ended;      /* an episode that was reported; at that read it had room again */
        bool waits;          /* writes wait for it then */
};

/* Pass onFull of the spec to the worker, if there is one. */
void device_space_apply(struct managed_device *device, const struct device_record *record);
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
