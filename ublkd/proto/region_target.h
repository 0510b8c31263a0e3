/* SPDX-License-Identifier: MIT */
/* What the supervisor and the target of a worker share in the region: options that the worker follows while it serves, and what it
 * has counted. What both mean, only the target knows (target_desc.pack_live() and .show_counts()). */
#pragma once

#include "ublkd/proto/device_region.h"

/* Write the options, for the supervisor. Return 1; 0: they were so already; -E2BIG: they have no room; -errno as
 * device_region_read_control(). */
int region_target_set_options(int fd, const void *options, size_t size);
/* Read the counts, for the supervisor. Return 0 or -errno as device_region_read_control(). */
int region_target_read_counts(int fd, uint64_t ret[static REGION_TARGET_COUNTS]);
