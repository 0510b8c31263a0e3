/* SPDX-License-Identifier: MIT */
/* The disk that the control helper holds while a command is under way. */
#include "ublkd/driver/ublk_ctl_hold.h"

#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

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
        char path[64];

        snprintf(path, sizeof(path), "/sys/block/ublkb%u/dev", number);
        return read_device_at(AT_FDCWD, path, ret) >= 0;
}

bool ctl_hold_is_disk(unsigned number, int fd)
{
        struct stat info;
        dev_t device;

        return fstat(fd, &info) >= 0 && S_ISBLK(info.st_mode) && read_device(number, &device)
               && info.st_rdev == device;
}
