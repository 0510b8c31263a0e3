/* SPDX-License-Identifier: MIT */
/* The process that connected to a Unix socket: not another one that got its number later.
 *
 * The kernel keeps the struct pid of the process that called connect(), and SO_PEERPIDFD is a descriptor of it: a later
 * process with the same number has another struct. As long as that descriptor shows a process that has not ended, no
 * other process can have had its number since it connected. So what some program looked up by this number is about the
 * right process, if peer_process_lives() is true afterwards. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct peer_process {
        pid_t pid;
        uid_t uid; /* in effect when it connected, as is the group */
        gid_t gid;
        int pidfd; /* owned */
};

/* Identify the process at the other end of a connected socket. Return 0; -ESRCH: it has ended, or is in a PID namespace
 * that this process does not see; -ENOPROTOOPT: the kernel has no SO_PEERPIDFD (Linux 6.5); other -errno. */
int peer_process_open(int socket, struct peer_process *ret);
void peer_process_close(struct peer_process *peer);

/* Return whether the process still runs. */
bool peer_process_lives(const struct peer_process *peer);
