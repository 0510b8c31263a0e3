/* SPDX-License-Identifier: MIT */
/* Unmounts what was taken back, in one mount namespace.
 *
 * The process has no right over the host when it looks: it has the ids of no user there, and it is root of the container in what it
 * looks up. It follows no link, and asks no file system of the container: it looks up only what the kernel has in memory, and has
 * statx(2) ask none (AT_STATX_DONT_SYNC).
 * It judges what it has opened, unmounts that, and removes nothing. A mount that is covered, or that is moved meanwhile, stays. */
#include "ublkd/nodes/recall_here.h"
#include "ublkd/nodes/process_rights.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/mount_line.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

enum {
        POINTS_MAX = 1024,
        TRIES = 8, /* of a look-up: a rename anywhere disturbs it */
};

/* ---- what is mounted ---- */

/* A place at which something is mounted that was taken back. */
struct point {
        char *path;
        uint64_t mount;
};

struct points {
        struct point items[POINTS_MAX]; /* of one namespace; more stay */
        size_t count;
};

static bool is_node_that_went(const char *root)
{
        static const char place[] = "/ublk/private/", deleted[] = "//deleted";
        size_t length = strlen(root);

        return strstr(root, place) && length > strlen(deleted)
               && strcmp(root + length - strlen(deleted), deleted) == 0;
}

/* Each copy that was delivered, and each copy of that, has the ids of a container. A user namespace that gets all mounts of the host has
 * that one without: the kernel lets no user unmount it alone, and its end on the host ends it there. So it does not count, or any user
 * could hinder an unmount. */
static bool is_delivered(const struct mount_line *line)
{
        return strstr(line->flags, ",idmapped") != NULL;
}

static bool was_taken_back(const struct mount_line *line, const struct recall_wish *wish)
{
        char device[32];

        snprintf(device, sizeof(device), "%u:%u", major(wish->device), minor(wish->device));
        return strcmp(line->device, device) == 0
               && (wish->what == RECALL_NODES ? is_node_that_went(line->root) : is_delivered(line));
}

static FILE *open_mounts(int proc)
{
        int fd = openat(proc, "self/mountinfo", O_RDONLY | O_CLOEXEC);
        FILE *list = fd < 0 ? NULL : fdopen(fd, "re");

        if (!list)
                close_fd(fd);
        return list;
}

/* Call `look` for each mount of our namespace. Return 0 or -errno. */
static int each_mount(int proc, void (*look)(void *userdata, const struct mount_line *mount), void *userdata)
{
        _cleanup_free_ char *line = NULL;
        _cleanup_fclose_ FILE *list = open_mounts(proc);
        size_t size = 0;
        ssize_t n;

        if (!list)
                return -errno;
        while (errno = 0, (n = getline(&line, &size, list)) > 0) {
                struct mount_line mount;

                if (line[n - 1] == '\n')
                        line[n - 1] = '\0';
                if (mount_line_parse(line, &mount) >= 0)
                        look(userdata, &mount);
        }
        return errno == 0 ? 0 : -errno;
}

struct search {
        struct points *points;
        const struct recall_wish *wish;
};

static void note_point(void *userdata, const struct mount_line *mount)
{
        const struct search *search = userdata;
        struct points *points = search->points;
        char *path = NULL;

        if (points->count == POINTS_MAX || !was_taken_back(mount, search->wish))
                return;
        path = strdup(mount->point);
        if (path)
                points->items[points->count++] = (struct point){.path = path, .mount = mount->id};
}

/* ---- one of them ---- */

/* Return a descriptor; -EAGAIN: the kernel does not have all of the path in memory, or a file system has to be asked. */
static int lookup(int parent, const char *path, int flags)
{
        const struct open_how how = {
                .flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
                .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED,
        };
        int fd = -1;

        for (int i = 0; i < TRIES && fd < 0; i++) {
                fd = (int)syscall(SYS_openat2, parent, path, &how, sizeof(how));
                if (fd < 0 && errno != EAGAIN)
                        return -errno;
        }
        return fd < 0 ? -EAGAIN : fd;
}

/* What the kernel knows, without the file system: one of the container may never answer. */
static int look(int file, unsigned mask, struct statx *ret)
{
        return statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask, ret) < 0 ? -errno : 0;
}

/* Return whether the file is what is mounted by that mount, and was taken back. Nothing but the mount and its device is asked before it
 * is certain that these are those of the host. */
static bool is_at(int file, const struct point *point, const struct recall_wish *wish)
{
        struct statx info;

        if (look(file, STATX_MNT_ID, &info) < 0 || !(info.stx_mask & STATX_MNT_ID)
                || info.stx_mnt_id != point->mount
                || makedev(info.stx_dev_major, info.stx_dev_minor) != wish->device
                || !(info.stx_attributes & STATX_ATTR_MOUNT_ROOT))
                return false;
        if (wish->what != RECALL_NODES)
                return true;
        return look(file, STATX_MODE | STATX_TYPE | STATX_NLINK, &info) >= 0 && S_ISBLK(info.stx_mode)
               && (info.stx_mode & 07777) == 0 && info.stx_nlink == 0;
}

/* file: closed, as it would keep the mount in use; its end also takes an earlier mark of MNT_EXPIRE from the mount, without which that
 * unmounts nothing. What the container puts at the path meanwhile is its own. */
static int unmount_unused(int file, const char *path, bool try)
{
        close_fd(file);
        if (umount2(path, UMOUNT_NOFOLLOW | (try ? MNT_EXPIRE : 0)) >= 0)
                return 0;
        return try && errno == EAGAIN ? 0 : -errno;
}

static int unmount_open(int file, int proc)
{
        _cleanup_close_ int open_file = file;
        char link[32];

        snprintf(link, sizeof(link), "self/fd/%d", open_file);
        return fchdir(proc) < 0 || umount2(link, MNT_DETACH) < 0 ? -errno : 0;
}

/* The container decides what is at the place: something else there does not count as a failure. A mount that is locked (EINVAL) is a
 * copy of the mount, in a container in a container. */
static int recall_point(const struct point *point, int proc, const struct recall_wish *wish)
{
        _cleanup_close_ int file = lookup(AT_FDCWD, point->path, O_NOFOLLOW);
        int r;

        if (file < 0 || !is_at(file, point, wish))
                return 0;
        r = wish->what == RECALL_NODES
                    ? unmount_open(TAKE_FD(file), proc)
                    : unmount_unused(TAKE_FD(file), point->path, wish->what == RECALL_TRY_MOUNTS);
        return r == -EINVAL ? 0 : r;
}

static int enter_users(int users)
{
        const uint64_t rights = RIGHT(CAP_SYS_ADMIN) | RIGHT(CAP_DAC_READ_SEARCH);
        int r;

        if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0
                || setresgid(RECALL_ID, RECALL_ID, RECALL_ID) < 0
                || setresuid(RECALL_ID, RECALL_ID, RECALL_ID) < 0)
                return -errno;
        r = rights_set(RIGHT(CAP_SYS_ADMIN), RIGHT(CAP_SYS_ADMIN));
        if (r < 0)
                return r;
        if (setns(users, CLONE_NEWUSER) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        r = rights_set(rights, rights);
        return r < 0 ? r : rights_hide();
}

int recall_here(int mounts, int users, const struct recall_wish *wish)
{
        static struct points points;
        struct search search = {.points = &points, .wish = wish};
        _cleanup_close_ int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        int r;

        if (proc < 0 || setns(mounts, CLONE_NEWNS) < 0)
                return -errno;
        r = each_mount(proc, note_point, &search);
        if (r < 0 || points.count == 0)
                return r;
        if (wish->what == RECALL_FIND_MOUNTS)
                return -EEXIST;
        r = enter_users(users);
        if (r < 0)
                return r;
        for (size_t i = points.count; i > 0; i--) { /* the last mount is on top */
                int error = recall_point(&points.items[i - 1], proc, wish);

                if (error == -EBUSY)
                        return error; /* the others stay as well */
                r = error < 0 ? error : r;
        }
        return r;
}
