/* SPDX-License-Identifier: MIT */
/* Whether the process that connected to a Unix socket runs on this host itself, or in a container.
 *
 * In a container, the numbers of users and groups are those that its image chose: its user 0 is not root of the host,
 * also where no user namespace translates the number. A container is a process with another user or PID namespace than
 * this process, or with another mount namespace and another root directory in it. A service with a mount namespace of
 * its own (PrivateTmp=) has the root directory of the host, and a chroot has its mount namespace. */
#pragma once

enum peer_home {
        PEER_HOME_UNASKED,
        PEER_AT_HOME,      /* on this host */
        PEER_IN_CONTAINER, /* or in another sandbox that has a root directory or PIDs of its own */
        PEER_HOME_UNKNOWN, /* its process has ended, or this process may not look at it */
        _PEER_HOME_MAX
};

/* Return where the process at the other end of a connected socket runs; never PEER_HOME_UNASKED. Does not block, also
 * if the root directory of the process is on a file system that does not answer. Needs CAP_SYS_PTRACE for processes of
 * other users. Before Linux 6.5 the kernel names the process by its number alone, which may be another process by now. */
enum peer_home peer_home_of(int socket);
