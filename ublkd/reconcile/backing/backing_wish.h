/* SPDX-License-Identifier: MIT */
/* What CONFIG says of the backing stores that a worker must open: what each was when the disk was made, and the descriptors that the
 * device keeps. */
#pragma once

#include "ublkd/proto/worker_msg.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Used by the message as long as that is. */
struct backing_wish {
        struct listed_store listed[STORE_LIST_MAX];
        struct device_record next; /* as the record will be with a later spec without a list */
        int fds[STORE_LIST_MAX]; /* to pass with CONFIG, which the device keeps; those before the first -1 */
};

/* Fill in the stores that a preflight worker for `spec`, a later spec of the device, must open: those that the record knows, and no
 * descriptor. The strings of the message belong to the record and to *ret. Return 0 or -ENOMEM. */
int backing_wish_of_spec(const struct managed_device *device, const struct device_record *record,
        const struct device_spec *spec, struct backing_wish *ret, struct worker_msg *config);
/* Fill in the stores that the next worker must open. The same ownership. Return 0; -ESTALE: the disk lies in other stores than those
 * of the spec, so that no worker could serve it; -EBADF: backing_wish_misplaced(). */
int backing_wish_of_device(const struct managed_device *device, const struct device_record *record,
        struct backing_wish *ret, struct worker_msg *config);
/* Return the number of a store whose descriptor is that of another store of the device: its bytes would be written there. -1: there
 * is none. Reads what the kernel has in memory, so it waits for no server. */
int backing_wish_misplaced(const struct managed_device *device);
