/* SPDX-License-Identifier: MIT */
/* Mounts the file system of a disk, by descriptors. */
#include "ublkd/filesystems/filesystem_mount.h"
#include "ublkd/filesystems/filesystem_walls.h"
#include "ublkd/nodes/recall_process.h"

#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

/* ---- the directory ---- */

/* Open TOP, which is made if it is missing, and closed to all but root. Return a descriptor or -errno. */
static int open_top(const char *path, bool make)
{
        _cleanup_close_ int fd = -1;
        struct stat info;

        if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
                return -errno;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &info) < 0)
                return -errno;
        if (info.st_uid != 0 || (info.st_mode & (S_IWGRP | S_IWOTH)))
                return -EPERM;
        if (make && (info.st_mode & (S_IRWXG | S_IRWXO)) && fchmod(fd, 0700) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static int open_point(int top, const char *name)
{
        int fd = openat(top, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

static dev_t device_of(int point)
{
        struct statx info;

        return statx(point, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &info) < 0
                       ? 0
                       : makedev(info.stx_dev_major, info.stx_dev_minor);
}

/* disk: NULL: any. Return 1: the disk is mounted there; 0: nothing is; -EEXIST: another file system is; other -errno. */
static int is_mounted(int point, const dev_t *disk)
{
        struct statx info;

        if (statx(point, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &info) < 0)
                return -errno;
        if (!(info.stx_attributes & STATX_ATTR_MOUNT_ROOT))
                return 0;
        return !disk || makedev(info.stx_dev_major, info.stx_dev_minor) == *disk ? 1 : -EEXIST;
}

/* ---- the mount ---- */

static int configure(int context, enum filesystem_kind kind, const char *source)
{
        if (fsconfig(context, FSCONFIG_SET_STRING, "source", source, 0) < 0
                || (kind == FILESYSTEM_EXT4
                        && fsconfig(context, FSCONFIG_SET_STRING, "errors", "remount-ro", 0) < 0)
                || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return -errno;
        return 0;
}

/* Return the mount, which is nowhere yet; -ESTALE: the path leads to another disk; other -errno. */
static int make_mount(dev_t disk, const char *source, const struct filesystem_go *go)
{
        unsigned attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
        _cleanup_close_ int context = -1, tree = -1;
        struct stat root;
        int r;

        if (go->flags & FILESYSTEM_NO_EXEC)
                attributes |= MOUNT_ATTR_NOEXEC;
        context = fsopen(filesystem_kind_name((enum filesystem_kind)go->kind), FSOPEN_CLOEXEC);
        if (context < 0)
                return -errno;
        r = configure(context, (enum filesystem_kind)go->kind, source);
        if (r < 0)
                return r;
        tree = fsmount(context, FSMOUNT_CLOEXEC, attributes);
        if (tree < 0 || fstat(tree, &root) < 0)
                return -errno;
        return root.st_dev == disk ? TAKE_FD(tree) : -ESTALE;
}

static int attach(int top, const char *name, dev_t disk, const char *source, const struct filesystem_go *go)
{
        _cleanup_close_ int point = -1, tree = -1;
        int r;

        if (mkdirat(top, name, 0700) < 0 && errno != EEXIST)
                return -errno;
        point = open_point(top, name);
        r = point < 0 ? point : is_mounted(point, &disk);
        if (r != 0)
                return r < 0 ? r : 0;
        tree = make_mount(disk, source, go);
        if (tree < 0)
                return tree;
        return move_mount(tree, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? -errno
                                                                                                      : 0;
}

/* A list of access shows in the bits of the group. Nodes of disks are the administrator's. */
int filesystem_store_is_open(const char *path)
{
        struct stat info;

        if (*path == '\0')
                return 0;
        if (stat(path, &info) < 0)
                return -errno;
        return S_ISREG(info.st_mode) && (info.st_uid != 0 || (info.st_mode & (S_IWGRP | S_IWOTH)));
}

int filesystem_mount(int disk, const char *source, const struct filesystem_go *go)
{
        _cleanup_close_ int top = open_top(go->top, true);
        struct stat node;
        int r;

        if (top < 0 || fstat(disk, &node) < 0)
                return top < 0 ? top : -errno;
        if (!S_ISBLK(node.st_mode))
                return -ENOTBLK;
        r = filesystem_walls_keep_mounts();
        if (r >= 0)
                r = attach(top, go->point, node.st_rdev, source, go);
        if (r < 0)
                (void)unlinkat(top, go->point, AT_REMOVEDIR); /* refused where something is mounted */
        return r;
}

/* try: nothing is unmounted, unless the mount has the mark of an earlier try, which each look at it takes away. */
static int detach(const struct filesystem_go *go, bool try)
{
        char path[FILESYSTEM_PATH_SIZE + FILESYSTEM_UUID_SIZE + 1];

        snprintf(path, sizeof(path), "%s/%s", go->top, go->point);
        if (umount2(path, UMOUNT_NOFOLLOW | (try ? MNT_EXPIRE : 0)) >= 0)
                return 0;
        return try && errno == EAGAIN ? 0 : -errno;
}

/* In a child, which gives up what it does not need: what comes after it needs more. */
static int detach_alone(const struct filesystem_go *go, bool try)
{
        siginfo_t info = {};
        pid_t pid = fork();
        int r;

        if (pid == 0) {
                r = prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -errno : filesystem_walls_keep_mounts();
                _exit(-(r < 0 ? r : detach(go, try)));
        }
        if (pid < 0 || waitid(P_PID, (id_t)pid, &info, WEXITED) < 0)
                return -errno;
        return info.si_code == CLD_EXITED ? -info.si_status : -EPIPE;
}

/* Nothing is unmounted, in a container or on the host, before all of it could be. A container that cannot be looked at counts as one that
 * uses the file system. The mount of the host stays until the end, and shows what is left. */
static int unmount_everywhere(const struct filesystem_go *go, dev_t disk)
{
        int r = go->flags & FILESYSTEM_COPIES_TOO ? 0 : recall_mounts(disk, RECALL_FIND_MOUNTS);

        if (r >= 0)
                r = recall_mounts(disk, RECALL_TRY_MOUNTS);
        if (r >= 0)
                r = detach_alone(go, true);
        if (r >= 0)
                r = recall_mounts(disk, RECALL_MOUNTS);
        if (r >= 0)
                r = detach_alone(go, false);
        /* What came meanwhile: a delivery that is under way keeps the mount of the host in use, and no other comes after its end. */
        if (r >= 0)
                (void)recall_mounts(disk, RECALL_MOUNTS);
        return r;
}

int filesystem_unmount(const struct filesystem_go *go)
{
        _cleanup_close_ int top = open_top(go->top, false), point = -1;
        dev_t disk;
        int r;

        if (top < 0)
                return top == -ENOENT ? 0 : top;
        point = open_point(top, go->point);
        if (point < 0)
                return point == -ENOENT ? 0 : point;
        r = is_mounted(point, NULL);
        disk = device_of(point);
        point = close_fd(point); /* it would keep the mount in use */
        if (r == 0)
                return unlinkat(top, go->point, AT_REMOVEDIR) < 0 ? -errno : 0;
        if (r > 0)
                r = unmount_everywhere(go, disk);
        if (r >= 0)
                (void)unlinkat(top, go->point, AT_REMOVEDIR); /* the next mount uses it */
        return r;
}
