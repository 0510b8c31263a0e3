/* SPDX-License-Identifier: MIT */
/* The backing stores of a device: each kept by a descriptor while its disk exists, recognised by its identity after
 * that.
 *
 * A worker passes a descriptor of the store that it has opened (BACKING). The supervisor holds it from before
 * ADD_DEV until the disk is removed, and longer if the same spec makes the next disk. Each later worker opens
 * the store through it, wherever the path leads by then. While it is held, no other process gets the lock on
 * the bytes, nor the claim of a block device. The service manager keeps a copy for the next ublkd; without a
 * copy the next ublkd asks the living worker. If no descriptor is left, the next worker compares the identity
 * in the record with that of the store at the path, and refuses another store.
 *
 * A disk can lie in several stores (target_tree_has_list()). Each is kept, compared and accepted for itself, and the disk has all of
 * them or no worker. */
#pragma once

#include "ublkd/proto/worker_msg.h"
#include "ublkd/reconcile/parts/device_backing_part.h"
#include "ublkd/store/device_store.h"
#include "ublkd/workers/worker_proc.h"

struct managed_device;

/* Write the files into the recreated runtime directory. The next ublkd lacks those that fail. */
void device_backing_rewrite(const struct managed_device *device);
/* Load what an earlier ublkd has written down, or passed to the service manager. Before the first turn of any
 * device. */
void device_backing_load(struct managed_device *device, const struct device_record *record);
/* Update it from the facts of this turn: take the descriptor of a serving worker; close that of a removed
 * disk, unless the same spec makes the next disk. */
void device_backing_follow(struct managed_device *device, const struct device_record *record);
/* Hold the stores that the worker has opened, before the disk is created on them, and put their identities into the
 * record. All or none. Return 0; -ESTALE with a note: one is not the store of the record; or -errno of the store or the
 * runtime directory, with a note. */
int device_backing_take(struct managed_device *device, const struct device_record *record);
/* Check the store of a worker that is about to take over the disk. The same results. */
int device_backing_check(struct managed_device *device, const struct device_record *record);
/* Check that a worker with `params` can serve the disk as it was created. Return 0, or -ESTALE with a
 * note. */
int device_backing_check_frozen(struct managed_device *device, const struct disk_params *params);
/* Check that a worker with these parameters has the size of the existing disk. Return 0; or with a note
 * -ESTALE, or -errno of /sys. */
int device_backing_check_geometry(
        struct managed_device *device, const struct device_record *record, const struct disk_params *params);
/* Write down the parameters with which the disk is created. Return 0, or -errno with a note. */
int device_backing_freeze(struct managed_device *device, const struct disk_params *params);
/* Check a refused store again: the administrator has changed the spec, or asked for a recovery. */
void device_backing_retry(struct managed_device *device);
/* Close the descriptors at the exit of ublkd; the service manager and the worker keep theirs. */
void device_backing_drop(struct managed_device *device);
/* Close the store for good: the disk was removed. */
void device_backing_release(struct managed_device *device);
/* Return whether a descriptor of one of the stores is held. */
bool device_backing_is_held(const struct device_backing *backing);
/* Return whether one of the stores is a file without a name, so that only the disk has its data; false also if
 * unknown. */
bool device_backing_is_unnamed(const struct device_backing *backing);
/* Return whether `stores` (NULL: unknown) are those that the disk is served from, under whatever paths. */
bool device_backing_is_served_from(const struct device_backing *backing, const struct worker_stores *stores);
/* Return whether this ublkd holds a descriptor of `store` for the device, with the lock on its bytes. */
bool device_backing_holds(const struct device_backing *backing, const struct worker_store *store);
/* Return whether a store is that of the record with this number. */
enum backing_match device_backing_compare(const struct managed_device *device,
        const struct device_record *record, unsigned number, const struct backing_identity *found);
/* Return whether the device has as many stores as the spec (NULL: none). */
bool device_backing_fits(const struct device_backing *backing, const struct device_spec *spec);
/* Return the stores of the worker; NULL: it has reported none, or other ones than the device has by their number. */
const struct worker_stores *device_backing_of_worker(const struct managed_device *device);
/* Return whether the worker has reported another number of stores than its disk has: no worker that ublkd has started
 * for the disk does. False also if that number is unknown. */
bool device_backing_is_miscounted(const struct managed_device *device);
/* Fill in the stores for the status. Return 0 or -ENOMEM. */
int device_backing_show(const struct managed_device *device, const struct device_record *record,
        struct device_status *status);
