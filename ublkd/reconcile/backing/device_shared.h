/* SPDX-License-Identifier: MIT */
/* The region that a device's workers share with the supervisor, and the record beside it. */
#pragma once

#include "ublkd/proto/device_region.h"
#include "ublkd/reconcile/parts/device_shared_part.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Pass the limits and busyPollUs of the spec to the worker, if there is one; no limits while the timeout of the disk is about
 * to be set (device_timeout_part.h). */
void device_shared_apply(struct managed_device *device, const struct device_record *record);
/* Lift the limits before the disk is stopped: stopping waits for the requests that they hold back. */
void device_shared_lift(struct managed_device *device);
/* Write the history to the region, and read it from there. It is only shown: a missing region is not a
 * failure. */
void device_shared_keep_history(const struct managed_device *device, const struct region_history *history);
/* The same after the start of a worker was counted in `history`. */
void device_shared_count_restart(const struct managed_device *device, const struct target_tree *tree,
        const struct region_history *history);
void device_shared_recall_history(const struct managed_device *device, struct region_history *ret);
/* Return 0 if the worker, which has sent PARAMS, may serve; -EPROTO, with a note: its program does not know of the kept
 * memory of the targets. */
int device_shared_check_kept(struct managed_device *device, const struct target_tree *tree);
/* Report, by one event, that the disk has lost what its targets kept, if the region that is open as fd says so and there is no
 * event of it; note there once the database has it. */
void device_shared_report_loss(struct managed_device *device, int fd);
/* Return the bytes of kept memory that the region has for the targets of the disk; 0: none. */
uint64_t device_shared_kept_bytes(const struct managed_device *device, const struct device_record *record);
/* Ensure that the record is in the runtime directory: without it a ublkd that has lost its database cannot
 * adopt the disk. Return 0, or -errno, which one event reports. */
int device_keep_record(struct managed_device *device);
/* Remove the region that the workers shared, and the record beside it. */
void device_shared_drop(struct managed_device *device);
