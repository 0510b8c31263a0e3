/* SPDX-License-Identifier: MIT */
/* The link to the supervisor: one connection at a time, and a socket on which later supervisors call. */
#include "targets/worker/chan.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

enum { SEND_PATIENCE = 1000 /* milliseconds */ };

static int check_socket(int fd)
{
        socklen_t size = sizeof(int);
        int type;

        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0)
                return errno == EBADF ? -ENOTSOCK : -errno;
        return type == SOCK_SEQPACKET ? 0 : -ENOTSOCK;
}

static int set_flags(int fd)
{
        int flags = fcntl(fd, F_GETFL);

        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
                return -errno;
        return 0;
}

int chan_open(struct chan *chan)
{
        int r = check_socket(WORKER_CHANNEL_FD);

        if (r >= 0)
                r = set_flags(WORKER_CHANNEL_FD);
        if (r < 0)
                return r;
        *chan = (struct chan){.connection = WORKER_CHANNEL_FD, .listener = -1, .owner = geteuid()};
        return 0;
}

int chan_listen(struct chan *chan, int listener)
{
        int r;

        chan->listener = listener;
        r = check_socket(listener);
        if (r >= 0)
                r = set_flags(listener);
        if (r < 0)
                return r;
        /* Here, not in the supervisor, so that SO_PEERCRED shows callers that they reached this process. */
        return listen(listener, SOMAXCONN) < 0 ? -errno : 0;
}

void chan_close(struct chan *chan)
{
        chan->connection = close_fd(chan->connection);
        chan->listener = close_fd(chan->listener);
}

int chan_accept(struct chan *chan)
{
        _cleanup_close_ int fd = -1;
        struct ucred peer;
        socklen_t size = sizeof(peer);

        fd = accept4(chan->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
                return errno == EAGAIN || errno == ECONNABORTED || errno == EINTR ? 0 : -errno;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0
                || (peer.uid != 0 && peer.uid != chan->owner))
                return 0;
        chan_hang_up(chan);
        chan->connection = TAKE_FD(fd);
        return 1;
}

void chan_links(const struct chan *chan, int ret[2])
{
        ret[0] = chan->connection;
        ret[1] = chan->listener;
}

void chan_hang_up(struct chan *chan)
{
        chan->connection = close_fd(chan->connection);
}

int chan_offer(struct chan *chan, const struct worker_msg *msg)
{
        int r = chan->connection < 0 ? 0 : worker_msg_send(chan->connection, msg);

        if (r < 0 && r != -EAGAIN)
                chan_hang_up(chan);
        return r;
}

int chan_send(struct chan *chan, const struct worker_msg *msg, const int fds[static _CONFIG_FD_MAX])
{
        struct pollfd poll_fd = {.fd = chan->connection, .events = POLLOUT};
        int r;

        if (chan->connection < 0)
                return 0;
        r = worker_msg_send_fds(chan->connection, msg, fds);
        if (r == -EAGAIN && poll(&poll_fd, 1, SEND_PATIENCE) > 0)
                r = worker_msg_send_fds(chan->connection, msg, fds);
        if (r < 0)
                chan_hang_up(chan);
        return r;
}
