/* SPDX-License-Identifier: MIT */
/* Watches whether the paths of a device's spec still lead to the stores of its disk. path_condition.h makes the
 * reports. */
#pragma once

#include "ublkd/paths/path_watch.h"
#include "ublkd/reconcile/parts/device_path_part.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Update the watches from the facts of this turn: they begin and end with the disk. */
void device_path_follow(struct managed_device *device, const struct device_record *record);
/* End the watches. */
void device_path_drop(struct managed_device *device);
/* Return where the path leads, as far as the open descriptors identify the store of the disk; of several paths what is
 * worst: one that leads elsewhere or to nothing, then one that is unknown. next: a later spec of the device, of which
 * only the paths that it leaves as they are count; NULL: all count. */
enum path_state device_path_state(const struct managed_device *device, const struct device_spec *next);
/* Return how many paths there are; 0: none is watched. */
unsigned device_path_count(const struct managed_device *device);
/* Return the room below the file at that path; not `known` if there is nothing to go by. */
struct path_room device_path_room(const struct managed_device *device, unsigned number);
/* Return whether the last event was that this room is low; set it. It ends with the watch: another store is news. */
bool device_path_was_low(const struct managed_device *device, unsigned number);
void device_path_note_low(struct managed_device *device, unsigned number, bool low);
/* Return the pointer of that path into the spec, which stays the device's; NULL: it is the only one. */
const char *device_path_place(const struct managed_device *device, unsigned number);
/* Write CONDITION_PATH_LEADS_TO_STORE. Return 0 or -ENOMEM. */
int device_path_condition(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
