/* SPDX-License-Identifier: MIT */
/* The disk that has a partition: in sysfs, a partition is a directory in that of its disk. */
#include "ublkd/disks/disk_whole.h"

#include "ublkd/base/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <unistd.h>

int disk_whole(const char *sys, dev_t number, dev_t *ret)
{
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s/dev/block/%u:%u", sys, major(number), minor(number));
        _cleanup_close_ int dir = -1;

        if (n < 0 || (size_t)n >= sizeof(path))
                return -ENAMETOOLONG;
        dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
                return -errno;
        if (faccessat(dir, "partition", F_OK, 0) == 0)
                return read_device_at(dir, "../dev", ret);
        *ret = number;
        return 0;
}
