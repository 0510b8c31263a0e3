/* SPDX-License-Identifier: MIT */
/* Which process listens on a worker's socket. */
#pragma once

#include <sys/types.h>

/* Find the process that called listen() for the socket that `channel` is connected to. Return a pidfd of it,
 * which the caller closes, and its pid; -ENOENT: it is gone; -ENOPROTOOPT: the kernel is older than 6.5;
 * other -errno. */
int worker_peer_find(int channel, pid_t *ret_pid);
