/* SPDX-License-Identifier: MIT */
/* Which process listens on a worker's socket.
 *
 * The kernel gives a pidfd of that very process. Its number alone is not enough: the process may be dead,
 * with a child of it that holds the socket, and the number be another process's by now. That one would be
 * killed at the first protocol error. So no number is ever looked up. */
#include "ublkd/workers/worker_peer.h"

#include "ublkd/base/cleanup.h"

#include <poll.h>
#include <sys/socket.h>

#ifndef SO_PEERPIDFD /* Linux 6.5; newer than the headers of Debian 12 */
#ifdef __hppa__
#define SO_PEERPIDFD 0x404B
#elif defined(__sparc__)
#define SO_PEERPIDFD 0x0056
#else
#define SO_PEERPIDFD 77
#endif
#endif

static int find_pid(int channel, pid_t *ret)
{
        struct ucred peer = {};
        socklen_t size = sizeof(peer);

        if (getsockopt(channel, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return -errno;
        *ret = peer.pid;
        return peer.pid > 0 ? 0 : -ENOENT;
}

static int find_pidfd(int channel)
{
        socklen_t size = sizeof(int);
        int pidfd = -1;

        if (getsockopt(channel, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) < 0)
                return errno == ESRCH || errno == EINVAL || errno == ENODATA ? -ENOENT : -errno;
        return pidfd;
}

int worker_peer_find(int channel, pid_t *ret_pid)
{
        _cleanup_close_ int pidfd = -1;
        pid_t pid = 0;
        int r = find_pid(channel, &pid);

        if (r < 0)
                return r;
        pidfd = find_pidfd(channel);
        if (pidfd < 0)
                return pidfd;
        if (poll(&(struct pollfd){.fd = channel}, 1, 0) != 0) /* it has closed the connection */
                return -ENOENT;
        *ret_pid = pid;
        return TAKE_FD(pidfd);
}
