/* SPDX-License-Identifier: MIT */
/* Mounts the file system of a disk, by descriptors. */
#include "ublkd/filesystems/filesystem_mount.h"
#include "ublkd/filesystems/filesystem_claim.h"
#include "ublkd/filesystems/filesystem_hold.h"
#include "ublkd/filesystems/filesystem_walls.h"
#include "ublkd/nodes/mount_users.h"
#include "ublkd/nodes/recall_process.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

/* CLAIM_MSEC, CLAIM_AGAIN_MSEC: how long, and how often, ublkd checks a disk again whose last mount may be ending.
 * CLAIM_LATE_MSEC: how long if its last unmount may still write. */
enum { CLAIM_MSEC = 200, CLAIM_AGAIN_MSEC = 10, CLAIM_LATE_MSEC = 5000 };

/* ---- the directory ---- */

/* Open TOP. make: create it if it is missing, for root alone. Return a descriptor or -errno. */
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

enum { MOUNT_SIZE = FILESYSTEM_PATH_SIZE + FILESYSTEM_UUID_SIZE + 1 };

static const char *mount_path(const struct filesystem_go *go, char ret[static MOUNT_SIZE])
{
        snprintf(ret, MOUNT_SIZE, "%s/%s", go->top, go->point);
        return ret;
}

/* Find the disk whose file system is mounted there. Return 1; 0: nothing is; -errno. */
static int find_mounted(int point, dev_t *ret_disk)
{
        struct statx info;

        if (statx(point, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &info) < 0)
                return -errno;
        if (!(info.stx_attributes & STATX_ATTR_MOUNT_ROOT))
                return 0;
        *ret_disk = makedev(info.stx_dev_major, info.stx_dev_minor);
        return 1;
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
        char path[MOUNT_SIZE];
        dev_t mounted = 0;
        int r;

        if (mkdirat(top, name, 0700) < 0 && errno != EEXIST)
                return -errno;
        point = open_point(top, name);
        r = point < 0 ? point : find_mounted(point, &mounted);
        if (r != 0)
                return r < 0 ? r : mounted == disk ? 0 : -EEXIST;
        if (filesystem_claim_find(disk, source)
                == FILESYSTEM_CLAIM_FREE) /* not even a copy is left in a container */
                mount_users_begin(mount_path(go, path));
        tree = make_mount(disk, source, go);
        if (tree < 0)
                return tree;
        return move_mount(tree, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? -errno
                                                                                                      : 0;
}

/* Remove the directory, which the kernel refuses while something is mounted there, and the list of users. Return 0 or -errno. */
static int remove_point(int top, const struct filesystem_go *go)
{
        char path[MOUNT_SIZE];

        if (unlinkat(top, go->point, AT_REMOVEDIR) < 0)
                return -errno;
        mount_users_end(mount_path(go, path));
        return 0;
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
                (void)remove_point(top, go);
        return r;
}

/* try: mark the mount, and unmount nothing, unless it has the mark of an earlier try. Each access to the mount removes
 * the mark. */
static int detach(const struct filesystem_go *go, bool try)
{
        char path[MOUNT_SIZE];

        if (umount2(mount_path(go, path), UMOUNT_NOFOLLOW | (try ? MNT_EXPIRE : 0)) >= 0)
                return 0;
        return try && errno == EAGAIN ? 0 : -errno;
}

/* Detach in a child, which drops the rights that it does not need: later steps of this process need them. */
static int detach_alone(const struct filesystem_go *go, bool try)
{
        siginfo_t info = {};
        pid_t self = getpid(), pid = fork();
        int r;

        if (pid == 0) {
                r = prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -errno
                    : getppid() != self                  ? -ESRCH
                                                         : filesystem_walls_keep_mounts();
                _exit(-(r < 0 ? r : detach(go, try)));
        }
        if (pid < 0 || waitid(P_PID, (id_t)pid, &info, WEXITED) < 0)
                return -errno;
        return info.si_code == CLD_EXITED ? -info.si_status : -EPIPE;
}

/* Look for copies of the mount of a disk. A removed disk has no copies. */
static int look_at_copies(const struct filesystem_hold *hold, const char *path, enum recall_what what)
{
        int r = filesystem_hold_check(hold);

        return r > 0 ? recall_mounts(hold->disk, path, what) : r;
}

/* Return 0 if each copy could be unmounted, and this unmount may do it; -errno. Nothing is unmounted. */
static int try_copies(const struct filesystem_go *go, const struct filesystem_hold *hold, const char *path)
{
        int r = go->flags & FILESYSTEM_COPIES_TOO ? 0 : look_at_copies(hold, path, RECALL_FIND_MOUNTS);

        return r < 0 ? r : look_at_copies(hold, path, RECALL_TRY_MOUNTS);
}

/* Copies are unmounted only if they are not to stay. */
static enum recall_what choose_recall(const struct filesystem_go *go)
{
        return go->flags & FILESYSTEM_COPIES_TOO ? RECALL_MOUNTS : RECALL_FIND_MOUNTS;
}

/* A removed disk is free: nothing has its file system. With a copy that keeps its number, the claim cannot be seen: the
 * copy itself claims the disk. Return enum filesystem_claim, or -errno. */
static int ask_claim(const struct filesystem_go *go, const struct filesystem_hold *hold)
{
        int r = filesystem_hold_check(hold);

        if (r <= 0)
                return r < 0 ? r : FILESYSTEM_CLAIM_FREE;
        return hold->claims ? FILESYSTEM_CLAIM_UNSEEN : filesystem_claim_find(hold->disk, go->node);
}

/* The kernel may end a mount a moment after the call that has unmounted it, so a claimed disk is checked again. */
static int find_claim(const struct filesystem_go *go, const struct filesystem_hold *hold, int msec)
{
        int64_t end = clock_msec(CLOCK_MONOTONIC) + msec;
        int claim;

        while ((claim = ask_claim(go, hold)) == FILESYSTEM_CLAIM_TAKEN && clock_msec(CLOCK_MONOTONIC) < end)
                (void)poll(NULL, 0, CLAIM_AGAIN_MSEC);
        return claim;
}

/* The mount of the host has ended: unmount the copies made since the last look. A delivery that was under way keeps
 * the mount of the host in use until its end, and the supervisor starts no other delivery. Copies in use stay, and the
 * next request looks again.
 *
 * A user of the list may have passed a copy on to a container of another user. Such a copy claims the disk, and then
 * the look covers all containers. No look finds a copy that is open but not mounted, a copy in a namespace without a
 * process, or a copy that was moved during the look: so the claim is checked again. If the claim of a disk cannot be
 * checked, the disk may be removed, and the result of the look counts.
 *
 * A free disk has no copy, also where no look has reached, and no container is looked at for it. The kernel writes
 * cached data at the end of the last copy. A look waits for that no longer than for a container. */
static int recall_rest(const struct filesystem_go *go, const struct filesystem_hold *hold, const char *path)
{
        const char *of[] = {path, NULL}; /* the users of the list, and all */
        int claim = ask_claim(go, hold), r = 0;

        for (unsigned i = 0; i < sizeof(of) / sizeof(*of) && claim > FILESYSTEM_CLAIM_FREE && r >= 0; i++) {
                r = look_at_copies(hold, of[i], choose_recall(go));
                if (r < 0 && r != -ETIMEDOUT)
                        return r;
                claim = find_claim(go, hold, r < 0 ? CLAIM_LATE_MSEC : CLAIM_MSEC);
        }
        if (claim <= FILESYSTEM_CLAIM_FREE)
                return claim;
        return r == 0 && claim == FILESYSTEM_CLAIM_TAKEN ? -EBUSY : r;
}

/* Unmount nothing, in a container or on the host, before the look shows that all of it can be unmounted. A container
 * that cannot be looked at counts as a user of the file system. The mount of the host stays until the last copy has
 * ended, and shows which copies are left. */
static int unmount_everywhere(
        const struct filesystem_go *go, const struct filesystem_hold *hold, bool *ret_ended)
{
        char mount[MOUNT_SIZE];
        const char *path = mount_path(go, mount);
        int r = try_copies(go, hold, path);

        if (r >= 0)
                r = detach_alone(go, true);
        if (r >= 0)
                r = look_at_copies(hold, path, choose_recall(go));
        if (r >= 0)
                r = detach_alone(go, false);
        *ret_ended = r >= 0;
        return r < 0 ? r : recall_rest(go, hold, path);
}

/* The mount of the host has ended. If there are copies, they have kept the number of the disk. */
static int unmount_left(const struct filesystem_go *go, const struct filesystem_hold *hold)
{
        char mount[MOUNT_SIZE];
        const char *path = mount_path(go, mount);
        int r = *go->number ? hold->error : -ENOENT;

        if (r < 0)
                return filesystem_hold_is_gone(r) ? 0 : r;
        r = ask_claim(go, hold);
        if (r <= FILESYSTEM_CLAIM_FREE)
                return r;
        r = try_copies(go, hold, path);
        return r < 0 ? r : recall_rest(go, hold, path);
}

int filesystem_unmount(struct filesystem_hold *hold, const struct filesystem_go *go, bool *ret_left)
{
        _cleanup_close_ int top = open_top(go->top, false), point = -1;
        dev_t disk = 0;
        bool ended;
        int r;

        *ret_left = false;
        if (top < 0)
                return top == -ENOENT ? 0 : top;
        point = open_point(top, go->point);
        if (point < 0)
                return point == -ENOENT ? 0 : point;
        r = find_mounted(point, &disk);
        ended = r == 0;
        if (r > 0)
                r = filesystem_hold_mounted(hold, point, disk);
        point = close_fd(point); /* it would keep the mount in use */
        if (r >= 0)
                r = ended ? unmount_left(go, hold) : unmount_everywhere(go, hold, &ended);
        filesystem_hold_end(hold); /* the report comes after the end of the file system */
        *ret_left = r < 0 && ended;
        if (r >= 0)
                (void)remove_point(top, go); /* on failure the next mount uses the directory */
        return r;
}
