/* SPDX-License-Identifier: MIT */
/* Whether the process that connected to a Unix socket runs on this host itself, or in a container.
 *
 * In a container, the numbers of users and groups are those that its image chose: its user 0 is not root of the host,
 * also where no user namespace translates the number. A container is a process with another user or PID namespace than
 * this process, or with another mount namespace and another root directory in it. A service with a mount namespace of
 * its own (PrivateTmp=) has the root directory of the host, and a chroot has its mount namespace. A container to which the
 * root directory of the host is mounted, and which makes it its own, stays one.
 *
 * A user namespace translates the numbers, and the user that makes it maps its own number, or those that root gave it
 * (/etc/subuid). So the number that the kernel shows of a process in there is one of the host, unless the namespace has
 * root of the host in it, who can take any number there; or a container without a user namespace is around it, whose root can
 * take any number, and make a user namespace for it. So only a user namespace that was made in that of this process counts,
 * and with the PIDs of the host only with its root directory. ublkd does not recognise a container without a user namespace
 * that has the PIDs of the host (--pid=host) and may make user, mount and PID namespaces: do not give it the socket. */
#pragma once

enum peer_home {
        PEER_HOME_UNASKED,
        PEER_AT_HOME,      /* on this host */
        PEER_IN_CONTAINER, /* or in another sandbox that has a root directory or PIDs of its own */
        PEER_IN_USER_NAMESPACE, /* the same, and users of its own: its uid is one of the host, and has no right of it */
        PEER_HOME_UNKNOWN, /* the process, or its main thread, has ended; or this process may not look at it */
        _PEER_HOME_MAX
};

/* Set *ret to where the process at the other end of a connected socket runs; never PEER_HOME_UNASKED. Needs
 * CAP_SYS_PTRACE for processes of other users, and Linux 6.5. Does not block, unless the process has a root directory of
 * its own on a file system that asks a server also for what it has cached (9p, gfs2, ocfs2, orangefs), which only root can
 * give it. Return 0; -EMFILE, -ENFILE, -ENOMEM. */
int peer_home_of(int socket, enum peer_home *ret);
