/* SPDX-License-Identifier: MIT */
/* What this kernel has to confine a process with. */
#pragma once

#include <stdbool.h>

struct kernel_walls {
        int landlock;     /* its version; 0: the kernel has none, or it is switched off, or cannot be asked */
        bool call_filter; /* seccomp, and ublkd has a filter for this CPU (call_arch.h) */
        bool no_paths;    /* failfs: a process can have every path refused (Linux 7.3) */
};

/* Ask the kernel for all of them, or, on the way of a recovery, for one: a system call each. */
struct kernel_walls kernel_walls_read(void);
/* Return its version; 0: the kernel has none, or it is switched off; -errno: something else refuses the question, so a wall
 * that may be there would be missing. */
int kernel_landlock(void);
bool kernel_refuses_paths(void);
