/* SPDX-License-Identifier: MIT */
/* The claim of a disk on its backing store: two disks never write to the same bytes. */
#pragma once

#include "ublkd/plan/claims.h"

#include <sys/types.h>

struct managed_device;

/* Its disk is about to write to what its worker has opened. 0; -EBUSY and a note when the disk of another device
 * does so already, or, for a new disk, another program; -ENOMEM. On failure the worker is killed: another try
 * comes after the back-off. */
int device_claim_take(struct managed_device *device);
/* Its disk is about to write up to `size` bytes from where it begins. The same results. */
int device_claim_extend(struct managed_device *device, uint64_t size);
/* Its worker has found its store locked by `holder` (0: not known). Where that is the worker of another device
 * here, a note names the device instead. */
void device_claim_name_holder(struct managed_device *device, pid_t holder);
/* Its worker has sent a message or has got GO: what it writes to is claimed from now on. */
void device_claim_note_worker(struct managed_device *device);
/* Make the claim follow the facts of this turn. */
void device_claim_follow(struct managed_device *device);
void device_claim_release(struct managed_device *device);
/* Take over what an earlier ublkd has written down. Before any device has its turn. */
void device_claim_load(struct managed_device *device);
/* Free what is held of the claim; it stays written down. */
void device_claim_forget(struct managed_device *device);
