/* SPDX-License-Identifier: MIT */
/* The system calls that a worker still has once its queues have fetched. */
#pragma once

#include <stdbool.h>

/* Make the installation faster, for a process with one thread; it needs no_new_privs. Nothing is refused by this, but
 * calls that are made as another CPU's end the process. Return as the next function. */
int call_filter_prepare(void);
/* For all threads of the process, and for good; needs no_new_privs in each of them. Any other call returns
 * EPERM. connects: they may make sockets of TCP, and connect them. 0; -ENOSYS: the kernel has no such filter; other
 * -errno. */
int call_filter_install(bool connects);
