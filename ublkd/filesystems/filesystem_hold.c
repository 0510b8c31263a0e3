/* SPDX-License-Identifier: MIT */
/* Keeps the number of a disk whose file system is unmounted. */
#include "ublkd/filesystems/filesystem_hold.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/fd_path.h"
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
        int fd;

        if (node < 0 || fstat(node, &st) < 0)
                return -errno;
        if (!S_ISBLK(st.st_mode) || st.st_rdev != disk)
                return -ESTALE;
        fd = open(fd_path(node).text, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        return fd < 0 ? -errno : fd;
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
        if (hold.fd < 0)
                hold.fd = -1;
        return hold;
}

/* A disk that was removed by force, as one without a node, cannot be opened. */
static int keep_mounted(int point, dev_t disk)
{
        char path[48];
        int fd;

        snprintf(path, sizeof(path), "/dev/block/%u:%u", major(disk), minor(disk));
        fd = open_node(path, disk);
        if (fd < 0)
                fd = open_tree(point, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
        return fd < 0 ? -errno : fd;
}

int filesystem_hold_mounted(struct filesystem_hold *hold, int point, dev_t disk)
{
        int fd;

        if (hold->fd >= 0 && hold->disk == disk)
                return 0;
        fd = keep_mounted(point, disk);
        if (fd < 0)
                return fd;
        close_fd(hold->fd);
        hold->fd = fd;
        hold->disk = disk;
        return 0;
}

bool filesystem_hold_lasts(const struct filesystem_hold *hold)
{
        dev_t disk;

        if (hold->fd >= 0)
                return true;
        return hold->disk != 0 && read_device_at(AT_FDCWD, hold->number, &disk) >= 0 && disk == hold->disk
               && read_sequence(hold->number) == hold->sequence;
}

void filesystem_hold_end(struct filesystem_hold *hold)
{
        hold->fd = close_fd(hold->fd);
}
