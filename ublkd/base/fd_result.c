/* SPDX-License-Identifier: MIT */
/* A descriptor, or an error, from a child. */
#include "ublkd/base/fd_result.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union control {
        struct cmsghdr header; /* for its alignment */
        char bytes[CMSG_SPACE(sizeof(int))];
};

bool fd_result_send(int link, int fd)
{
        union control control = {};
        struct iovec data = {.iov_base = &fd, .iov_len = sizeof(fd)};
        struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};

        if (fd >= 0) {
                message.msg_control = control.bytes;
                message.msg_controllen = sizeof(control.bytes);
                *CMSG_FIRSTHDR(&message) = (struct cmsghdr){
                        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
                memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof(fd));
        }
        return sendmsg(link, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(fd);
}

int fd_result_receive(int link, int flags)
{
        union control control = {};
        int result = -EPIPE;
        struct iovec data = {.iov_base = &result, .iov_len = sizeof(result)};
        struct msghdr message = {.msg_iov = &data,
                .msg_iovlen = 1,
                .msg_control = control.bytes,
                .msg_controllen = sizeof(control.bytes)};
        const struct cmsghdr *header;

        if (recvmsg(link, &message, MSG_CMSG_CLOEXEC | flags) != (ssize_t)sizeof(result))
                return -EPIPE;
        header = CMSG_FIRSTHDR(&message);
        if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
                return result < 0 ? result : -EPIPE;
        memcpy(&result, CMSG_DATA(header), sizeof(result));
        return result;
}
