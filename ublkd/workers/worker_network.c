/* SPDX-License-Identifier: MIT */
/* References to the network namespaces of workers, by way of their pidfds. */
#include "ublkd/workers/worker_network.h"

#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <sys/ioctl.h>

/* include/uapi/linux/pidfd.h, PIDFD_GET_NET_NAMESPACE */
#define GET_NET_NAMESPACE _IO(0xFF, 4)

int worker_network_open(int pidfd)
{
        int fd = ioctl(pidfd, GET_NET_NAMESPACE, 0); /* close-on-exec: fs/nsfs.c, open_namespace() */

        return fd < 0 ? -errno : fd;
}

void worker_networks_keep(struct worker_networks *networks, int fd)
{
        if (fd >= 0 && networks->count < WORKER_NETWORKS_MAX)
                networks->fds[networks->count++] = fd;
        else
                close_fd(fd);
}

void worker_networks_drop(struct worker_networks *networks)
{
        while (networks->count > 0)
                close_fd(networks->fds[--networks->count]);
}
