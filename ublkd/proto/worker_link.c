/* SPDX-License-Identifier: MIT */
/* Messages of worker_msg.c over a socket, and descriptors beside them. */
#include "ublkd/proto/worker_msg.h"

#include <string.h>
#include <sys/socket.h>

enum { FDS_SIZE = _CONFIG_FD_MAX * sizeof(int) };

/* Room for the descriptors beside a message, aligned as the kernel wants it. */
union control {
        struct cmsghdr header;
        char space[CMSG_SPACE(FDS_SIZE)];
};

/* ---- sending ---- */

static void attach(struct msghdr *header, union control *control, const int *fds)
{
        struct cmsghdr *item;
        size_t size = 0;

        while (size < FDS_SIZE && fds[size / sizeof(int)] >= 0)
                size += sizeof(int);
        if (size == 0)
                return;
        memset(control, 0, sizeof(*control));
        header->msg_control = control;
        header->msg_controllen = CMSG_SPACE(size);
        item = CMSG_FIRSTHDR(header);
        item->cmsg_level = SOL_SOCKET;
        item->cmsg_type = SCM_RIGHTS;
        item->cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(item), fds, size);
}

/* fds: or NULL. */
static int send_text(int fd, enum worker_msg_type type, char *text, const int *fds)
{
        struct iovec bytes = {.iov_base = text, .iov_len = strlen(text)};
        struct msghdr header = {.msg_iov = &bytes, .msg_iovlen = 1};
        union control control;

        if (bytes.iov_len > worker_msg_size_max(type))
                return -EMSGSIZE;
        if (fds)
                attach(&header, &control, fds);
        if (sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
                return 0;
        switch (errno) {
        case ECONNRESET: /* the peer went with messages unread */
        case ENOTCONN:
                return -EPIPE;
        case ENOBUFS:
                return -EAGAIN;
        default:
                return -errno;
        }
}

int worker_msg_send(int fd, const struct worker_msg *msg)
{
        _cleanup_free_ char *text = NULL;
        int r = worker_msg_encode(msg, &text);

        return r < 0 ? r : send_text(fd, msg->type, text, NULL);
}

int worker_msg_send_fds(int fd, const struct worker_msg *msg, const int fds[static _CONFIG_FD_MAX])
{
        _cleanup_free_ char *text = NULL;
        int r = worker_msg_encode(msg, &text);

        return r < 0 ? r : send_text(fd, msg->type, text, fds);
}

/* ---- receiving ---- */

/* recvmsg(), but not disturbed by a peer that went with messages unread: that error comes once, and before
 * the messages which it sent. */
static ssize_t receive(int fd, struct msghdr *header, int flags)
{
        for (;;) {
                ssize_t n = recvmsg(fd, header, flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

                if (n >= 0)
                        return n;
                if (errno != ECONNRESET && errno != EINTR)
                        return -errno;
        }
}

/* More than there is room for is closed by the kernel. */
static void detach(struct msghdr *header, int *ret_fds)
{
        for (struct cmsghdr *item = CMSG_FIRSTHDR(header); item; item = CMSG_NXTHDR(header, item))
                if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_RIGHTS
                        && item->cmsg_len <= CMSG_LEN(FDS_SIZE))
                        memcpy(ret_fds, CMSG_DATA(item), item->cmsg_len - CMSG_LEN(0));
}

static void drop(int *fds, unsigned count)
{
        for (unsigned i = 0; i < count; i++)
                fds[i] = close_fd(fds[i]);
}

/* Takes the next message, and as many of the descriptors beside it as there is room for. Its size, 0: the end, or -errno. */
static ssize_t receive_text(int fd, size_t size_max, char **ret_text, int *ret_fds, unsigned room)
{
        struct iovec bytes = {};
        struct msghdr header = {.msg_iov = &bytes, .msg_iovlen = 1};
        _cleanup_free_ char *text = NULL;
        union control control;
        ssize_t size = receive(fd, &header, MSG_PEEK | MSG_TRUNC), n;

        if (size <= 0)
                return size; /* an empty message looks like the end, and is as good as the end */
        if ((size_t)size > size_max) {
                (void)receive(fd, &header, 0);
                return -EBADMSG;
        }
        text = malloc((size_t)size);
        if (!text)
                return -ENOMEM;
        bytes = (struct iovec){text, (size_t)size};
        header = (struct msghdr){.msg_iov = &bytes, .msg_iovlen = 1};
        if (room > 0) {
                header.msg_control = &control;
                header.msg_controllen =
                        CMSG_LEN(room * sizeof(int)); /* what pads it would be room for one more */
        }
        n = receive(fd, &header, MSG_TRUNC);
        if (n < 0)
                return n;
        if (room > 0)
                detach(&header, ret_fds);
        *ret_text = TAKE_PTR(text);
        return n == size ? n : -EBADMSG;
}

/* fds: all -1, at least `room`. */
static int receive_message(int fd, size_t size_max, struct worker_msg *ret, int *fds, unsigned room)
{
        _cleanup_free_ char *text = NULL;
        ssize_t size = receive_text(fd, size_max, &text, fds, room);
        int r = size > 0 ? worker_msg_decode(text, (size_t)size, ret) : (int)size;

        if (r < 0)
                drop(fds, room);
        return size > 0 && r >= 0 ? 1 : r;
}

int worker_msg_receive(int fd, struct worker_msg *ret)
{
        return receive_message(fd, WORKER_MSG_SIZE_MAX, ret, NULL, 0);
}

int worker_msg_receive_fds(int fd, struct worker_msg *ret, int ret_fds[static _CONFIG_FD_MAX])
{
        memset(ret_fds, -1, _CONFIG_FD_MAX * sizeof(*ret_fds));
        return receive_message(fd, WORKER_MSG_SIZE_MAX, ret, ret_fds, _CONFIG_FD_MAX);
}

int worker_report_receive(int fd, struct worker_msg *ret, int *ret_fds, unsigned room)
{
        if (room > 0) /* else ret_fds may be NULL */
                memset(ret_fds, -1, room * sizeof(*ret_fds));
        return receive_message(fd, WORKER_REPORT_SIZE_MAX, ret, ret_fds, room);
}
