/* SPDX-License-Identifier: MIT */
/* PURE: what a change of a device would do to its disk, whether a client of the API or a file asks for it. */
#pragma once

#include "ublkd/store/device_record.h"

enum { DEVICES_MAX = 10000 }; /* in a store */

enum device_change {
        CHANGE_IN_PLACE,     /* the disk stays, or there is none */
        CHANGE_DISABLES,     /* it removes the disk */
        CHANGE_REPLACES_DISK /* it removes the disk, and makes another one */
};

/* Return what the change from the spec of `record` to `spec` does to the disk. `ret` is set for
 * CHANGE_REPLACES_DISK; it may be NULL. */
enum device_change device_change_of(
        const struct device_record *record, const struct device_spec *spec, struct disk_change *ret);

/* Return whether that change has to wait: it needs a new disk, and another worker takes over the one that there is. None of the
 * new epoch can, and openers that no search sees would lose it. */
bool device_change_must_wait(const struct device_record *record, const struct device_spec *spec);

/* Return the number of the device's disk; -1: it has none. Before the first look, and for a record that cannot be
 * used, the status knows of no disk although there may be one. */
int device_disk_number(const struct device_record *record);

/* Return the pool of the spec's target, which the spec owns; NULL: it has none. spec: NULL is fine. */
const char *device_spec_pool(const struct device_spec *spec);
/* Return the user with whose rights the store is opened: the owner of the device, if its path is not that of a pool;
 * 0: those of ublkd. spec: of the device, or one that it may get. */
uid_t device_store_user(const struct device_record *record, const struct device_spec *spec);
/* Return whether the image of the spec's target stays when the device is removed. */
bool device_spec_keeps_image(const struct device_spec *spec);
/* Return whether both specs name the same store: the same target, or one image of a pool with other options. */
bool device_spec_stores_equal(const struct device_spec *one, const struct device_spec *other);
/* Name the paths of `spec` that can lead elsewhere as the subject of a sentence: the path, or "one of its paths" of a list.
 * ret_field: the field of the spec that has them. Both are the spec's, or constant. NULL: it has no path. */
const char *device_spec_explain_paths(const struct device_spec *spec, const char **ret_field);
/* Return 1 + N if the path of the store N of `spec` may lead to another disk after a reboot, and `record` (NULL: a new
 * device) does not name it already; 0; or -ENOMEM. Reads the spec only, not the file system. */
int device_spec_path_is_unstable(const struct device_record *record, const struct device_spec *spec);
