/* SPDX-License-Identifier: MIT */
/* Opens the parts of the supervisor that disks are served without: a failure is a warning in the log. */
#pragma once

#include "ublkd/cgroups/worker_groups.h"
#include "ublkd/disks/disk_watch.h"
#include "ublkd/disk_marks.h"
#include "ublkd/partitions/partition_scan.h"

/* Open a part. Return NULL if that fails. The caller frees it. */
struct worker_groups *optional_worker_groups(sd_event *event);
struct partition_scanner *optional_partition_scanner(sd_event *event);
struct disk_watch *optional_disk_watch(sd_event *event, disk_watch_handler changed, void *userdata);
struct disk_marks *optional_disk_marks(struct device_store *store, struct runtime_dir *dir);
