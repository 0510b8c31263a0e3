/* How fast the kernel notices the death of a worker. */
#include "ublkd/disk_timeout.h"

#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <stdio.h>

int disk_timeout_shorten(int number)
{
        static const char milliseconds[] = "500";
        _cleanup_close_ int fd = -1;
        char path[64];

        snprintf(path, sizeof(path), "/sys/block/ublkb%d/queue/io_timeout", number);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        return write(fd, milliseconds, sizeof(milliseconds) - 1) < 0 ? -errno : 0;
}
