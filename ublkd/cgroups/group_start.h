/* SPDX-License-Identifier: MIT */
/* The start groups of devices with limits: "start-UID" beside the groups of workers. A worker of such a device that was
 * not a spare is born there, so the limits hold it from its first moment on, and it is moved to a group of its own later. What it
 * has allocated until then stays counted in the start group, which keeps the limits as long as the device has some. */
#pragma once

#include "ublkd/cgroups/group_limits.h"
#include "ublkd/cgroups/group_tree.h"

/* Open the start group (O_PATH). Never waits for the lock of all groups. Return a descriptor, which the caller closes;
 * -ENOENT: there is none; other -errno. */
int group_start_open(const struct group_tree *tree, const char *uid);
/* Make it if it is missing. Return as group_start_open() does. */
int group_start_make(const struct group_tree *tree, const char *uid);
/* Remove it. Return 0, also if there is none; -EBUSY: a process is in it; other -errno. */
int group_start_remove(const struct group_tree *tree, const char *uid);
/* Remove all that have no process. */
void group_start_sweep(const struct group_tree *tree);

/* Open the start group of a device with the bounds of these limits (group_limits_bound()), and make it if it is missing: only
 * then this waits for the lock. Return a descriptor (O_PATH), which the caller closes; -ENOENT: there are no groups, or no
 * bound can be in force; other -errno. */
int group_start_open_bounded(
        const struct group_place *place, const char *uid, const struct group_limits *limits);
/* Open the file for group_tree_oom_kills(). Return as group_tree_open_events() does. */
int group_start_open_events(const struct group_place *place, const char *uid);
