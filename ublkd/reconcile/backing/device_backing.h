/* SPDX-License-Identifier: MIT */
/* The backing store of a device: kept by a descriptor while its disk exists, recognised by its identity after
 * that.
 *
 * A worker passes a descriptor of the store that it has opened (BACKING). The supervisor holds it from before
 * ADD_DEV until the disk is removed, and longer if the same spec makes the next disk. Each later worker opens
 * the store through it, wherever the path leads by then. While it is held, no other process gets the lock on
 * the bytes, nor the claim of a block device. The service manager keeps a copy for the next ublkd; without a
 * copy the next ublkd asks the living worker. If no descriptor is left, the next worker compares the identity
 * in the record with that of the store at the path, and refuses another store. */
#pragma once

#include "ublkd/proto/worker_msg.h"
#include "ublkd/store/device_store.h"
#include "ublkd/workers/worker_proc.h"

struct managed_device;

/* Written by device_backing.c alone. device_path.c, which judges the same store, reads `held`, `known`, `at`
 * and `refused`, device_claim.c reads `held`, and device_publish.c `changed`. Zeroed it is empty. */
struct device_backing {
        bool held;              /* `fd` is valid */
        uint16_t epoch;         /* of the disk on the store; valid with `held` */
        bool known;             /* `at` is the disk's store, also without a descriptor */
        bool shares;            /* another device of this ublkd has the claim of the block device */
        int fd;                 /* of the store; by the file system, its own open file description */
        struct worker_store at; /* its fd is not used */
        int claim; /* with !at.claimed: the exclusive open that another device has passed on; else -1 */
        bool has_claim;
        bool changed; /* another store, or one that can do less, was refused; the device waits until the
                         right one is back, or the administrator consents */
        struct backing_identity
                refused; /* identity of the store that the last worker found instead; empty: none */
        bool frozen_known;
        struct disk_params frozen; /* of the disk, without claims */
};

/* Write the files into the recreated runtime directory. The next ublkd lacks those that fail. */
void device_backing_rewrite(const struct managed_device *device);
/* Load what an earlier ublkd has written down, or passed to the service manager. Before the first turn of any
 * device. */
void device_backing_load(struct managed_device *device, const struct device_record *record);
/* Update it from the facts of this turn: take the descriptor of a serving worker; close that of a removed
 * disk, unless the same spec makes the next disk. */
void device_backing_follow(struct managed_device *device, const struct device_record *record);
/* Hold the store that the worker has opened, before the disk is created on it, and put its identity into the
 * record. Return 0; -ESTALE with a note: it is not the store of the record; or -errno of the store or the
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
/* Fill in the identity of the store that a worker must open; its strings belong to the record. */
void device_backing_expect_same(
        const struct managed_device *device, const struct device_record *record, struct worker_msg *config);
/* Fill in the store that the next worker must open; its strings belong to the record. Return the descriptor
 * to pass with CONFIG, which the device keeps; -1: none. */
int device_backing_expect(
        const struct managed_device *device, const struct device_record *record, struct worker_msg *config);
/* Handle a worker that has refused the store or died. Return true: try again at once, and report nothing. */
bool device_backing_refused(struct managed_device *device);
/* Check a refused store again: the administrator has changed the spec, or asked for a recovery. */
void device_backing_retry(struct managed_device *device);
/* Close the descriptors at the exit of ublkd; the service manager and the worker keep theirs. */
void device_backing_drop(struct managed_device *device);
/* Close the store for good: the disk was removed. */
void device_backing_release(struct managed_device *device);
/* Return whether the store is a file without a name, so that only the disk has its data; false also if
 * unknown. */
bool device_backing_is_unnamed(const struct device_backing *backing);
/* Return whether `store` (NULL: unknown) is the one that the disk is served from, under whatever path. */
bool device_backing_is_served_from(const struct device_backing *backing, const struct worker_store *store);
/* Return whether this ublkd holds a descriptor of `store` for the device, with the lock on its bytes. */
bool device_backing_holds(const struct device_backing *backing, const struct worker_store *store);
/* Fill in the store for the status. */
void device_backing_show(const struct managed_device *device, const struct device_record *record,
        struct device_status *status);
