/* SPDX-License-Identifier: MIT */
/* The control group of a device's worker, with the limits of the spec (cgroups/worker_groups.h). What bounds the worker is in
 * force when it starts. A group of its own, and its share of the CPUs, it gets shortly after its disk is Live, so never in a
 * recovery; a spare has its group already. A disk is served without them as well. */
#pragma once

#include "ublkd/reconcile/parts/device_group_part.h"
#include "ublkd/store/device_store.h"

struct device_spec;
struct managed_device;

/* Return the limits of the spec, for a worker that is started now (worker_proc_spawn()); without the disk of `ioMax`. */
struct group_limits device_group_bounds(struct managed_device *device, const struct device_spec *spec);
/* Remove what was there for a preflight worker, which is dead. uid: it was started with. */
void device_group_end_preflight(struct managed_device *device, const char *uid);
/* Give the worker, which serves, its group and the limits of the spec, soon, unless it has them. */
void device_group_follow(struct managed_device *device, const struct device_record *record);
/* Return whether the kernel's OOM killer has killed the worker, which is dead. False if unknown. Before
 * device_group_end(). */
bool device_group_oom_killed(struct managed_device *device);
/* End what is left of the worker, which is dead. */
void device_group_end(struct managed_device *device);
/* Remove what is there for the next worker of the device, which is being removed. */
void device_group_remove(struct managed_device *device);
/* Free what it owns. */
void device_group_drop(struct managed_device *device);
/* Write the condition for device_publish.c, or leave *ret untouched without limits. Return 0 or -ENOMEM. */
int device_group_condition(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
