/* SPDX-License-Identifier: MIT */
/* The disk that the control helper holds while a command is under way. */
#include "ublkd/driver/ublk_ctl_hold.h"

#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

void ctl_hold_path(unsigned number, char path[static CTL_HOLD_PATH_SIZE])
{
        snprintf(path, CTL_HOLD_PATH_SIZE, "/dev/ublkb%u", number);
}

bool ctl_hold_has_disk(unsigned number)
{
        char path[64];

        snprintf(path, sizeof(path), "/sys/block/ublkb%u", number);
        return access(path, F_OK) == 0 || errno != ENOENT;
}

static bool read_device(unsigned number, dev_t *ret)
{
        unsigned device_major, device_minor;
        char path[64], text[32];
        _cleanup_close_ int fd = -1;
        ssize_t n;

        snprintf(path, sizeof(path), "/sys/block/ublkb%u/dev", number);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        text[n > 0 ? n : 0] = '\0';
        if (sscanf(text, "%u:%u", &device_major, &device_minor) != 2)
                return false;
        *ret = makedev(device_major, device_minor);
        return true;
}

bool ctl_hold_is_disk(unsigned number, int fd)
{
        struct stat info;
        dev_t device;

        return fstat(fd, &info) >= 0 && S_ISBLK(info.st_mode) && read_device(number, &device)
               && info.st_rdev == device;
}
