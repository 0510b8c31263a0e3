/* SPDX-License-Identifier: MIT */
/* Writes the files of one control group. Never waits for the lock of all groups, but a limit of I/O can wait for the disk
 * that it is about, the first time that the kernel limits any I/O there. */
#pragma once

#include "ublkd/cgroups/group_limits.h"

/* Write a text into a file below the directory, in one piece. Return 0 or -errno. */
int group_write(int dir, const char *name, const char *text);
/* Set up a group that was just made: all its processes end together, also for the OOM killer, because half a worker is of
 * no use; and no pressure is counted. group: an open directory; < 0: nothing. */
void group_write_new(int group);
/* Have the kernel not count the pressure on the group: it would do that at each switch of tasks, for each group that a task
 * is in (psi_group_change(), kernel/sched/psi.c), and nothing here reads it. That of the groups above, and of the machine,
 * is counted. Without PSI, and before Linux 6.1, there is no such file. */
void group_write_no_pressure(int group);
/* Write all limits, also those that are not set. group: an open directory; < 0: it cannot be opened. ret: 0 or -errno of
 * each that is set; -ENOENT: there is no controller; -ENODEV: no disk to limit. Return 0; -errno: one of those that are not
 * set could not be taken back. */
int group_write_limits(int group, const struct group_limits *limits, int ret[static _GROUP_LIMIT_MAX]);
/* Take back limits on memory and processes that are not set. Where that fails, they stay. */
void group_write_no_more_bounds(int group, const struct group_limits *limits);
/* Write the bounds (group_limits_bound()), and leave the others as they are. Return how many are in force now. */
unsigned group_write_bounds(int group, const struct group_limits *limits);
