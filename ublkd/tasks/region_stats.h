/* SPDX-License-Identifier: MIT */
/* The counters of a device, from the memory that its workers share. */
#pragma once

#include "ublkd/model/device_stats.h"
#include "ublkd/runtime/runtime_dir.h"
#include "ublkd/store/device_store.h"

/* Read the counters. Return 0 and *ret, which the caller frees with device_stats_free(); -ENOENT: there are none;
 * -ESTALE: the disk is served, and its counters were removed with the runtime directory; other -errno. */
int region_stats_read(struct runtime_dir *dir, const struct device_record *record, struct device_stats **ret);
