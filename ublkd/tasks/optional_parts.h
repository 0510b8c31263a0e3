/* SPDX-License-Identifier: MIT */
/* Opens the parts of the supervisor that disks are served without: a failure is a warning in the log. */
#pragma once

#include "ublkd/cgroups/worker_groups.h"
#include "ublkd/disks/disk_watch.h"
#include "ublkd/tasks/disk_marks.h"
#include "ublkd/nodes/cdi_spec.h"
#include "ublkd/nodes/node_recall.h"
#include "ublkd/nodes/private_node.h"
#include "ublkd/partitions/partition_scan.h"

/* Open a part. Return NULL if that fails. The caller frees it. */
struct worker_groups *optional_worker_groups(sd_event *event);
struct partition_scanner *optional_partition_scanner(sd_event *event, const char *program);
/* Also remove the private nodes whose disk, or whose device, is gone: before the first disk is made or removed. */
struct private_nodes *optional_private_nodes(const struct device_store *store, const struct runtime_dir *dir);
struct node_recall *optional_node_recall(sd_event *event, struct private_nodes *nodes, const char *program);
/* Also remove the files of an earlier ublkd: those of disks that serve are written again; and those in a directory
 * that the configuration named before. directory: NULL: return NULL. */
struct cdi_specs *optional_cdi_specs(
        const char *directory, const char *state_dir, const struct runtime_dir *dir);
struct disk_watch *optional_disk_watch(sd_event *event, disk_watch_handler changed, void *userdata);
struct disk_marks *optional_disk_marks(struct device_store *store, struct runtime_dir *dir);
