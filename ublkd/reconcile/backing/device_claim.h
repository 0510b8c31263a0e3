/* SPDX-License-Identifier: MIT */
/* The claim of a disk on its backing store: two disks never write to the same bytes. */
#pragma once

#include "ublkd/plan/claims.h"
#include "ublkd/reconcile/parts/device_claim_part.h"

#include <sys/types.h>

struct managed_device;

/* Begin with an empty table. */
void claim_table_init(struct claim_table *table);
/* Claim the store that the worker has opened, before the disk writes to it. Return 0; -EBUSY with a note: the
 * disk of another device writes to it, or, for a new disk, another program; -ENOMEM. On failure the caller
 * kills the worker, and the next try follows after the back-off. */
int device_claim_take(struct managed_device *device);
/* Extend the claim to `size` bytes from its beginning, before the disk grows. The same results. */
int device_claim_extend(struct managed_device *device, uint64_t size);
/* Handle a worker that found its store locked by `holder` (0: unknown). If that is the worker of another
 * device of this ublkd, or this ublkd, which keeps the store of another device, note the name of the device. */
void device_claim_name_holder(struct managed_device *device, pid_t holder);
/* Note that the worker has sent a message or got GO: its claims are in force from now on. */
void device_claim_note_worker(struct managed_device *device);
/* Update the claim from the facts of this turn. */
void device_claim_follow(struct managed_device *device);
void device_claim_release(struct managed_device *device);
/* Return the claims that are written down for the disk; count is 0 if it has no store. NULL: nothing is written down. */
const struct backing_claims *device_claim_written(const struct managed_device *device);
/* Return whether `claims` collide with what is written down for another device. */
bool device_claim_is_of_another(const struct managed_device *device, const struct backing_claims *claims);
/* Write the claim into the recreated runtime directory. If that fails, the worker reports it to the next
 * ublkd. */
void device_claim_rewrite(const struct managed_device *device);
/* Load the claim that an earlier ublkd has written down. Before the first turn of any device. */
void device_claim_load(struct managed_device *device);
/* Free the claim in memory; the written one stays. */
void device_claim_drop(struct managed_device *device);
