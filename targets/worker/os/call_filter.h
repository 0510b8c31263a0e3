/* SPDX-License-Identifier: MIT */
/* The system calls that a worker still has once its queues have fetched. */
#pragma once

#include <stdbool.h>

/* For all threads of the process, and for good; needs no_new_privs in each of them. Any other call returns
 * EPERM. connects: they may make sockets of TCP, and connect them. 0; -ENOSYS: the kernel has no such filter; other
 * -errno. */
int call_filter_install(bool connects);
