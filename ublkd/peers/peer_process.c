/* SPDX-License-Identifier: MIT */
/* The process that connected to a Unix socket. */
#include "ublkd/peers/peer_process.h"

#include "ublkd/base/cleanup.h"

#include <poll.h>
#include <sys/socket.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

bool peer_process_lives(const struct peer_process *peer)
{
        struct pollfd end = {.fd = peer->pidfd, .events = POLLIN};

        return poll(&end, 1, 0) == 0;
}

int peer_process_open(int socket, struct peer_process *ret)
{
        _cleanup_close_ int pidfd = -1;
        struct peer_process peer;
        struct ucred credentials;
        socklen_t size = sizeof(credentials);

        if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
                return -errno;
        size = sizeof(pidfd);
        if (credentials.pid <= 0)
                return -ESRCH;
        if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) < 0)
                return errno == EINVAL || errno == ENODATA ? -ESRCH : -errno; /* it has been reaped */
        peer = (struct peer_process){
                .pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid, .pidfd = pidfd};
        if (!peer_process_lives(&peer))
                return -ESRCH;
        pidfd = -1;
        *ret = peer;
        return 0;
}

void peer_process_close(struct peer_process *peer)
{
        peer->pidfd = close_fd(peer->pidfd);
}
