/* SPDX-License-Identifier: MIT */
/* The claim of a disk on its backing store: two disks never write to the same bytes. */
#pragma once

#include "ublkd/base/problem.h"
#include "ublkd/plan/claims.h"

#include <sys/queue.h>
#include <sys/types.h>

struct managed_device;

/* Private to device_claim.c. Zeroed, there is none. */
struct device_claim {
        struct backing_claims claims; /* what its disk writes to, with or without a worker */
        struct held_claims *held;     /* the same in the reconciler's index */
        LIST_ENTRY(managed_device) of_unclaimed;
        bool is_unclaimed;                /* in that list */
        struct problem_list sharing_told; /* who else uses it, as events have it; with the claims */
};

/* Of all devices. Private to device_claim.c. */
struct claim_table {
        struct claim_index index;
        /* Those whose worker writes, and whose claims are not written down yet, are all in it; others may be. */
        LIST_HEAD(, managed_device) unclaimed;
};

/* Begin with an empty table. */
void claim_table_init(struct claim_table *table);
/* Its disk is about to write to what its worker has opened. 0; -EBUSY and a note when the disk of another device
 * does so already, or, for a new disk, another program; -ENOMEM. On failure the worker is to be
 * killed: another try comes after the back-off. */
int device_claim_take(struct managed_device *device);
/* Extend the claim to `size` bytes from its beginning, before the disk grows. The same results. */
int device_claim_extend(struct managed_device *device, uint64_t size);
/* Handle a worker that found its store locked by `holder` (0: unknown). If that is the worker of another device of
 * this ublkd, note the name of the device. */
void device_claim_name_holder(struct managed_device *device, pid_t holder);
/* Note that the worker has sent a message or got GO: its claims are in force from now on. */
void device_claim_note_worker(struct managed_device *device);
/* Update the claim from the facts of this turn. */
void device_claim_follow(struct managed_device *device);
void device_claim_release(struct managed_device *device);
/* Return what is written down for its disk: nothing where count is 0. */
const struct backing_claims *device_claim_written(const struct managed_device *device);
/* Write the claim into the runtime directory again, after that was removed. If that fails, the worker tells the next
 * ublkd. */
void device_claim_rewrite(const struct managed_device *device);
/* Load the claim that an earlier ublkd has written down. Before the first turn of any device. */
void device_claim_load(struct managed_device *device);
/* Free the claim in memory; the written one stays. */
void device_claim_forget(struct managed_device *device);
