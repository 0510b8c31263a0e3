/* SPDX-License-Identifier: MIT */
/* Asks the kernel whether a disk is held, by an exclusive open that is closed at once.
 *
 * The kernel refuses the open while the disk or a partition is held by a mount (in any mount namespace, also one
 * without processes, or unmounted lazily), a swap area, dm, md or another exclusive opener. The open is
 * read-only, so that the close causes no udev event, and O_NONBLOCK, as usual for a probe. */
#include "ublkd/disk_users/disk_look.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

static int open_exclusively(int number)
{
        char path[32];
        int fd;

        snprintf(path, sizeof(path), "/dev/ublkb%d", number);
        fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK);
        return fd < 0 ? -errno : fd;
}

/* A disk that the kernel does not list has no users. */
static bool is_shown(const struct look *look, int number)
{
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/block/ublkb%d", look->roots->sys, number);
        return access(path, F_OK) == 0 || errno != ENOENT;
}

/* Check that the path led to the disk: its node may be replaced. */
static bool is_disk(const struct look *look, int number, int fd)
{
        struct stat info;

        if (fstat(fd, &info) < 0 || !S_ISBLK(info.st_mode))
                return false;
        for (size_t i = 0; i < look->device_count; i++)
                if (look->devices[i].number == number && look->devices[i].device == info.st_rdev)
                        return true;
        return false;
}

int disk_exclusive_add(const struct look *look, struct disk_users *disk)
{
        _cleanup_close_ int fd = -1;

        if (!is_shown(look, disk->number))
                return 0;
        fd = look->roots->open_exclusively ? look->roots->open_exclusively(disk->number)
                                           : open_exclusively(disk->number);
        if (fd == -EBUSY)
                return look_add_user(
                        disk, DISK_USER_UNKNOWN, "a mount that no process has, or another exclusive opener");
        if (fd < 0)
                return is_shown(look, disk->number) ? fd : 0;
        return look->roots->open_exclusively || is_disk(look, disk->number, fd) ? 0 : -ESTALE;
}
