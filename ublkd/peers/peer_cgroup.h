/* SPDX-License-Identifier: MIT */
/* The control group of the process that connected to a Unix socket. */
#pragma once

#include <limits.h>

enum { PEER_CGROUP_SIZE = PATH_MAX };

/* Read the control group (cgroup v2) in which the process at the other end of a connected socket is now, as this process
 * sees it: "/system.slice/backup.service". It is that of its main thread. The kernel prints no longer path than this.
 * Return 0; -ESRCH: the process has ended; -ENODATA: it is in none, or in one that this process does not see; another -errno:
 * unknown. */
int peer_cgroup_of(int socket, char ret[static PEER_CGROUP_SIZE]);
