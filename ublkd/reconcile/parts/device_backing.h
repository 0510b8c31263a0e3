/* SPDX-License-Identifier: MIT */
/* The backing store of a device: kept by a descriptor while its disk exists, recognised by its identity after
 * that.
 *
 * A worker passes a descriptor of the store that it has opened (BACKING). It is held from before ADD_DEV
 * until the disk is gone, and beyond that where the same spec makes the next disk. Each later worker opens the
 * store through it, whatever the path leads to by then. While it is held, nobody else gets the lock on the bytes, nor the claim of a block device. The
 * service manager keeps a copy for the next ublkd; where there is none the worker that lives is asked. Where
 * no descriptor is left, the next worker compares the identity that the record has with that of what it
 * finds, and refuses another store. */
#pragma once

#include "ublkd/proto/worker_msg.h"
#include "ublkd/store/device_store.h"
#include "ublkd/workers/worker_proc.h"

struct managed_device;

/* Written by device_backing.c alone. device_path.c, which judges the same store, reads `held`, `known`, `at` and
 * `refused`, device_claim.c reads `held`, and device_publish.c `changed`. Zeroed it is empty. */
struct device_backing {
        bool held;              /* `fd` is one */
        uint16_t epoch;         /* of the disk that it is of, with `held` */
        bool known;             /* `at` is where the disk's store is, also without a descriptor */
        bool shares;            /* another device of ours has the claim of the block device */
        int fd;                 /* of the store; by the file system, its own open file description */
        struct worker_store at; /* its fd is not used */
        int claim; /* -1, or where !at.claimed: the exclusive open that another device has left to this one */
        bool has_claim;
        bool changed; /* another store, or one that can do less, was refused; nothing goes on until the
                         right one is back, or the administrator consents */
        struct backing_identity
                refused; /* of the store that the last worker has found instead; empty: none */
        bool frozen_known;
        struct disk_params frozen; /* with which the disk was made; without its claim */
};

/* Takes over what an earlier ublkd has written down or had kept. Before any device has its turn. */
/* Writes down once more what is written down of it. What fails is missing for the next ublkd. */
void device_backing_rewrite(const struct managed_device *device);
void device_backing_load(struct managed_device *device, const struct device_record *record);
/* Makes it follow the facts of this turn: takes the descriptor of a worker that serves, closes that of a disk
 * which is gone, unless the next disk is made of the same spec. */
void device_backing_follow(struct managed_device *device, const struct device_record *record);
/* Its disk is about to be made on what its worker has opened: holds that, and puts the identity into the
 * record. 0; -ESTALE and a note where it is another store than the record's; -errno of the store or the
 * runtime directory, and a note. */
int device_backing_take(struct managed_device *device, const struct device_record *record);
/* A worker is about to take over its disk. The same results. */
int device_backing_check(struct managed_device *device, const struct device_record *record);
/* Whether a worker with `params` can serve its disk as it was made. 0, or -ESTALE and a note. */
int device_backing_check_frozen(struct managed_device *device, const struct disk_params *params);
/* Whether a worker with these parameters has the size of the disk that is there. 0; -ESTALE, or what /sys said, and
 * a note. */
int device_backing_check_geometry(
        struct managed_device *device, const struct device_record *record, const struct disk_params *params);
/* Remembers with which parameters its disk is made. 0 or -errno, and a note. */
int device_backing_freeze(struct managed_device *device, const struct disk_params *params);
/* Fills in what the next worker is to know of the store. Its strings are those of the record. Returns the
 * descriptor to pass with it, which stays the device's; -1: none. */
int device_backing_expect(
        const struct managed_device *device, const struct device_record *record, struct worker_msg *config);
/* Its worker has refused the store, or died. True: another try has to come at once, and nothing is to be
 * reported. */
bool device_backing_refused(struct managed_device *device);
/* The administrator has changed the spec, or asked for a recovery: what was refused is looked at again. */
void device_backing_retry(struct managed_device *device);
/* Closes what is held, for the end of ublkd: what the service manager and the worker have stays. */
void device_backing_forget(struct managed_device *device);
/* Its disk is gone: closes the store for good. */
void device_backing_release(struct managed_device *device);
/* Whether it is a file that has no name any more: only its disk has the data. False: that is not known. */
bool device_backing_is_unnamed(const struct device_backing *backing);
/* What the user is shown of it. */
void device_backing_show(const struct managed_device *device, const struct device_record *record,
        struct device_status *status);
