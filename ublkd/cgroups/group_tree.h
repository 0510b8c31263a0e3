/* SPDX-License-Identifier: MIT */
/* The control groups of all workers: a directory of cgroup v2 with a group for each worker, named after its process, and
 * the group "rest" for processes that have none (yet). Plain files, so that tests have a directory of their own.
 *
 * A call may wait: the kernel has one lock for all groups, and moves a process only when no thread of the machine is
 * about to start or to exit. So these run in a thread (worker_groups.c), but for the last three. */
#pragma once

#include "ublkd/cgroups/group_limits.h"
#include "ublkd/cgroups/group_place.h"

#include <stdint.h>
#include <sys/types.h>

/* The open directory. */
struct group_tree {
        int fd;
        uint64_t pid_namespace; /* as in struct group_place */
};

/* Open the directory. make: create it if it is missing. Return 0, and the caller closes it; -ENOENT: it is missing;
 * other -errno. */
int group_tree_open(const struct group_place *place, bool make, struct group_tree *ret);
void group_tree_close(struct group_tree *tree);
/* The same to pass to the calls below that say so. Never waits for the lock. */
int group_tree_open_path(const struct group_place *place, struct group_tree *ret);
/* Enable the controllers of these limits, of memory, and of processes for the groups, as far as the directory has them; processes of
 * the directory itself are moved to the group "rest" before, because they keep the kernel from that. The pressure on the
 * directory is not counted any more. `above`: those of the directory above it, first, where systemd does not do that.
 * What cannot be enabled is missed by group_tree_limit(). */
void group_tree_enable(const struct group_tree *tree, const struct group_limits *limits, bool above);

/* Put the process into a group of its own, unless it is there. Return 1: it was moved; 0: it was there; -EBUSY: its
 * group has remains of a dead worker, which are killed now: try again; other -errno. If the process is reaped meanwhile,
 * another one that has its pid is moved: see afterwards, and call group_tree_undo(). */
int group_tree_hold(const struct group_tree *tree, pid_t pid);
/* Move the process that has the pid out of the group of that name, to the group "rest", and remove the group, as far as
 * possible. */
void group_tree_undo(const struct group_tree *tree, pid_t pid);
/* Write the limits of its group, also those that are not set. ret: 0 or -errno of each that is set; -ENOENT: there is no
 * controller; -ENODEV: no disk to limit. Return 0; -errno: one of those that are not set could not be taken back. */
int group_tree_limit(const struct group_tree *tree, pid_t pid, const struct group_limits *limits,
        int ret[static _GROUP_LIMIT_MAX]);
/* Open the group of a worker (O_PATH), for group_write.h. Never waits for the lock. Return a descriptor, which the caller
 * closes; -ENOENT: it has none; other -errno. */
int group_tree_open_own(const struct group_tree *tree, pid_t pid);
/* Kill what is left of a worker that the caller has seen dead, which the group may not show yet. Return 0: there is no
 * group; 1: it can be removed when its processes are dead; -errno. */
int group_tree_kill(const struct group_tree *tree, pid_t pid);
/* End what is left of a worker that is dead: kill the processes in its group, and remove the group. Return 0, also if
 * there is no group; 1: nothing was done, because the worker lives; -EBUSY: a process is not dead yet; other -errno. */
int group_tree_end(const struct group_tree *tree, pid_t pid);
/* End every group whose worker is dead, and reaped if it is a child, also those of an earlier ublkd. Return how many of them
 * could not be removed yet, or -errno. */
int group_tree_sweep(const struct group_tree *tree);

/* Open the group "rest", for a process that is to be born in it (O_PATH), and make it if it is missing. Waits for the lock
 * only in that case, once for each start of the unit of the workers. Return a descriptor, which the caller closes; -errno. */
int group_tree_open_rest(const struct group_place *place);
/* Return whether the process is in its group: 1; 0; -errno: unknown. Never waits for the lock. */
int group_tree_has(const struct group_place *place, pid_t pid);
/* Open the file in which the kernel counts what its OOM killer did in the group, for group_tree_oom_kills(). Never waits
 * for the lock. Return a descriptor, which the caller closes; -errno. */
int group_tree_open_events(const struct group_place *place, pid_t pid);
/* Read how many processes of the group the kernel's OOM killer has killed. Return 0 or -errno. */
int group_tree_oom_kills(int events, uint64_t *ret);
