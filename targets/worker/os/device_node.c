/* SPDX-License-Identifier: MIT */
/* The driver's node for a device, /dev/ublkcN. */
#include "targets/worker/os/device_node.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

int device_node_prepare(void)
{
        int fd = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

int device_node_open(int folder, int number)
{
        _cleanup_close_ int fd = -1;
        char name[32];
        struct stat stat;

        snprintf(name, sizeof(name), "ublkc%d", number);
        /* O_NONBLOCK: else io_uring takes reads and writes of it (user copy) for such as may wait, and hands
         * every one of them to another thread. */
        fd = openat(folder, name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0) {
                switch (errno) {
                case ENOENT:
                case EACCES:
                case EBUSY:
                case ENXIO:
                case EINTR:
                        return -EAGAIN;
                default:
                        return -errno;
                }
        }
        if (fstat(fd, &stat) < 0)
                return -errno;
        if (!S_ISCHR(stat.st_mode))
                return -ENODEV;
        return TAKE_FD(fd);
}
