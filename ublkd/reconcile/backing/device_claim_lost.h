/* SPDX-License-Identifier: MIT */
/* The claims of disks that a lost database had. */
#pragma once

#include "ublkd/plan/claims.h"
#include "ublkd/reconcile/parts/device_claim_lost_part.h"

#include <sys/types.h>

struct managed_device;
struct reconciler;

/* Find the records in the runtime directory that the store lacks. Before the first turn of any device. Return 0 or
 * -errno. */
int reconciler_find_lost(struct reconciler *reconciler);
void reconciler_drop_lost(struct reconciler *reconciler);
/* Return 0, or -EBUSY with a note if these claims collide with those of a disk that the database lost. */
int device_claim_check_lost(struct managed_device *device, const struct backing_claims *claims);
/* Handle a worker that found its store locked by `holder`. If that is the worker of a disk that the database lost,
 * note how to adopt that disk. */
void device_claim_name_lost_holder(struct managed_device *device, pid_t holder);
