/* SPDX-License-Identifier: MIT */
/* Keeps the number of a disk whose file system is unmounted. */
#include "ublkd/filesystems/filesystem_hold.h"
#include "ublkd/filesystems/filesystem_open.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Return a descriptor, or -errno. Without O_EXCL: it claims nothing. */
static int open_node(const char *path, dev_t disk)
{
        _cleanup_close_ int node = open(path, O_PATH | O_CLOEXEC);
        struct stat st;

        if (node < 0 || fstat(node, &st) < 0)
                return -errno;
        if (!S_ISBLK(st.st_mode) || st.st_rdev != disk)
                return -ESTALE;
        return filesystem_open_in_time(node, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, OPEN_MSEC);
}

/* No two disks of one boot have the same one. Return 0 if there is none. */
static uint64_t read_sequence(const char *number)
{
        _cleanup_close_ int directory = -1;
        char path[256];
        uint64_t sequence = 0;
        const char *end = strrchr(number, '/');

        if (!end || snprintf(path, sizeof(path), "%.*s", (int)(end - number), number) >= (int)sizeof(path))
                return 0;
        directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return directory >= 0 && read_number_at(directory, "diskseq", &sequence) >= 0 ? sequence : 0;
}

struct filesystem_hold filesystem_hold_begin(const char *node, const char *number)
{
        struct filesystem_hold hold = {.fd = -1, .number = number};

        hold.error = *number ? read_device_at(AT_FDCWD, number, &hold.disk) : -ENOENT;
        if (hold.error < 0)
                return hold;
        hold.sequence = read_sequence(number);
        hold.fd = *node ? open_node(node, hold.disk) : -1;
        hold.is_late = hold.fd == -ETIMEDOUT;
        if (hold.fd < 0)
                hold.fd = -1;
        return hold;
}

/* A disk that was removed by force, as one without a node, cannot be opened. */
static int keep_mounted(int point, dev_t disk, bool is_late, bool *ret_claims)
{
        char path[48];
        int fd;

        snprintf(path, sizeof(path), "/dev/block/%u:%u", major(disk), minor(disk));
        fd = is_late ? -ETIMEDOUT : open_node(path, disk);
        *ret_claims = fd < 0 && major(disk) != 0; /* a file system without a disk claims none */
        if (fd < 0)
                fd = open_tree(point, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
        return fd < 0 ? -errno : fd;
}

int filesystem_hold_mounted(struct filesystem_hold *hold, int point, dev_t disk)
{
        bool claims;
        int fd;

        if (hold->fd >= 0 && hold->disk == disk)
                return 0;
        fd = keep_mounted(point, disk, hold->is_late, &claims);
        if (fd < 0)
                return fd;
        close_fd(hold->fd);
        hold->fd = fd;
        hold->claims = claims;
        hold->disk = disk;
        return 0;
}

bool filesystem_hold_is_gone(int error)
{
        return error == -ENOENT || error == -ENODEV || error == -ENXIO;
}

int filesystem_hold_check(const struct filesystem_hold *hold)
{
        dev_t disk;
        int r = hold->error;

        if (hold->fd >= 0)
                return 1;
        if (r >= 0)
                r = read_device_at(AT_FDCWD, hold->number, &disk);
        if (r < 0)
                return filesystem_hold_is_gone(r) ? 0 : r;
        return disk == hold->disk && read_sequence(hold->number) == hold->sequence ? 1 : -ESTALE;
}

void filesystem_hold_end(struct filesystem_hold *hold)
{
        hold->fd = close_fd(hold->fd);
}
