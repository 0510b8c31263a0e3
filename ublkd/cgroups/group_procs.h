/* SPDX-License-Identifier: MIT */
/* The processes of a control group, as its cgroup.procs lists them. */
#pragma once

#include "ublkd/base/cleanup.h"

#define GROUP_PROCS "cgroup.procs"

/* Open the list of the group `name` of the directory `dir`, as openat(2) takes them. Return 0 and a stream, which the
 * caller closes; -errno. */
int group_procs_open(int dir, const char *name, FILE **ret);

/* Read the next process. Return 1 and its pid, 0 if it is of another pid namespace; 0 at the end; -EIO. */
int group_procs_next(FILE *stream, long *ret);
