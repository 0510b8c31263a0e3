/* SPDX-License-Identifier: MIT */
/* Whether the path of a device's spec still leads to what its disk is served from. What is reported of
 * it: path_condition.h. */
#pragma once

#include "ublkd/paths/path_watch.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Private to device_path.c; zeroed it is empty. */
struct device_path {
        struct path_watch *watch;  /* NULL: there is no disk, or the target has no path */
        enum path_state announced; /* by the last event; UNKNOWN: none was needed yet */
};

/* Makes the watch follow the facts of this turn: it begins with the disk, and ends with it. */
void device_path_follow(struct managed_device *device, const struct device_record *record);
/* Ends the watch. */
void device_path_forget(struct managed_device *device);
/* Where its path leads, as far as the store that its disk was made on can be told by what is open now. */
enum path_state device_path_state(const struct managed_device *device);
/* CONDITION_PATH_LEADS_TO_STORE. 0 or -ENOMEM. */
int device_path_condition(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
