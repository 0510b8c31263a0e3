/* SPDX-License-Identifier: MIT */
/* Watches whether the path of a device's spec still leads to the store of its disk. path_condition.h makes
 * the report. */
#pragma once

#include "ublkd/paths/path_watch.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Private to device_path.c. Zeros: empty. */
struct device_path {
        struct path_watch *watch;  /* NULL: there is no disk, or the target has no path */
        enum path_state announced; /* by the last event; UNKNOWN: none was needed yet */
};

/* Update the watch from the facts of this turn: it begins and ends with the disk. */
void device_path_follow(struct managed_device *device, const struct device_record *record);
/* End the watch. */
void device_path_drop(struct managed_device *device);
/* Return where the path leads, as far as the open descriptors identify the store of the disk. */
enum path_state device_path_state(const struct managed_device *device);
/* Return the room below the file of the disk; not `known` if there is nothing to go by. */
struct path_room device_path_room(const struct managed_device *device);
/* Write CONDITION_PATH_LEADS_TO_STORE. Return 0 or -ENOMEM. */
int device_path_condition(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
