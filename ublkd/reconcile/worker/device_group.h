/* SPDX-License-Identifier: MIT */
/* The control group of a device's worker, with the limits of the spec (cgroups/worker_groups.h). A worker gets both
 * shortly after its disk is Live, so never in a recovery; a spare has its group already. A disk is served without them
 * as well. */
#pragma once

#include "ublkd/reconcile/parts/device_group_part.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Give the worker, which serves, its group and the limits of the spec, soon, unless it has them. */
void device_group_follow(struct managed_device *device, const struct device_record *record);
/* Return whether the kernel's OOM killer has killed the worker, which is dead. False if unknown. Before
 * device_group_end(). */
bool device_group_oom_killed(const struct managed_device *device);
/* End what is left of the worker, which is dead. */
void device_group_end(struct managed_device *device);
/* Free what it owns. */
void device_group_drop(struct managed_device *device);
/* Write the condition for device_publish.c, or leave *ret untouched without limits. Return 0 or -ENOMEM. */
int device_group_condition(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
