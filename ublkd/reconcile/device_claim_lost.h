/* SPDX-License-Identifier: MIT */
/* The claims of disks that a lost database knew. */
#pragma once

#include "ublkd/plan/claims.h"

struct managed_device;
struct reconciler;

/* Find the records in the runtime directory that the store has not. Before any device has its turn. 0 or
 * -errno. */
int reconciler_find_lost(struct reconciler *reconciler);
void reconciler_forget_lost(struct reconciler *reconciler);
/* 0; -EBUSY and a note when these collide with what a disk has that the database lost. */
int device_claim_check_lost(struct managed_device *device, const struct backing_claims *claims);
