/* SPDX-License-Identifier: MIT */
/* What a program that makes or checks a file system gives up before it starts. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct filesystem_walls {
        int disk; /* its descriptor */
        bool writes;
        pid_t parent; /* as it was before the fork: the program ends with it */
};

/* Give up all capabilities for good; all groups; all files but the disk, and programs,
 * libraries and configuration for reading; sockets, rings, mounts, other processes and keys, on CPUs that call_arch.h
 * knows. Allow some memory and CPU time. The user is root without a right, or the owner of the disk's node: so that the
 * program can open it. There is no way back, also not by executing a program. Return 0; -EOPNOTSUPP: the kernel has no
 * Landlock; -ESRCH: the parent has ended; other -errno: do not start the program. */
int filesystem_walls_raise(const struct filesystem_walls *walls);

/* Give up all capabilities for good but those for mounts: CAP_SYS_ADMIN, and CAP_DAC_OVERRIDE for the nodes of disks.
 * Return 0; -errno: do not mount. */
int filesystem_walls_keep_mounts(void);
