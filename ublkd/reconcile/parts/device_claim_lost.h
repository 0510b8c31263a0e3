/* SPDX-License-Identifier: MIT */
/* The claims of disks that a lost database knew. */
#pragma once

#include "ublkd/plan/claims.h"

#include <sys/types.h>

struct managed_device;
struct reconciler;

/* Private to device_claim_lost.c. Zeroed it is empty. */
struct lost_claims {
        char **uids; /* owned */
        size_t count;
};

/* Find the records in the runtime directory that the store has not. Before any device has its turn. 0 or
 * -errno. */
int reconciler_find_lost(struct reconciler *reconciler);
void reconciler_forget_lost(struct reconciler *reconciler);
/* 0; -EBUSY and a note when these collide with what a disk has that the database lost. */
int device_claim_check_lost(struct managed_device *device, const struct backing_claims *claims);
/* The worker of `device` has found its store locked by `holder`. Where that is the worker of a disk that the database
 * lost, a note names how to adopt the disk instead. */
void device_claim_name_lost_holder(struct managed_device *device, pid_t holder);
