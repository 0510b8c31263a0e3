/* SPDX-License-Identifier: MIT */
/* Unmounts nodes that were taken back, in each mount namespace that a user has made.
 *
 * A node that was taken back has no name and no rights any more, and never gets them again: so each mount of such a node may
 * go, by whatever process it was made, and it does not matter how the search has found it. The search reads what the kernel writes of the
 * mounts, not what the container does: it begins with a process of each namespace, and a child for each enters it.
 *
 * The child has no right over the host: it has the ids of no user there, and it is root of the container in what it looks up. It follows no
 * link, and waits for no file system: it looks up only what the kernel has in memory, as it has the place of each mount. It
 * judges what it has opened, and unmounts that. A mount that is covered, or that is moved meanwhile, stays. */
#include "ublkd/nodes/recall_process.h"
#include "ublkd/nodes/process_rights.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/mount_line.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

enum { OVERFLOW_ID = 65534, CHILD_MSEC = 2000, SECONDS_MAX = 60, POINTS_MAX = 1024 };

/* ---- what is mounted ---- */

/* A place at which a node is mounted that was taken back. */
struct point {
        char *path;
        uint64_t parent; /* the mount that the place is on */
        bool is_local;   /* its file system waits for no process and no network */
};

struct points {
        struct point items[POINTS_MAX]; /* of one namespace; more stay */
        size_t count;
};

static bool was_taken_back(const struct mount_line *line, dev_t nodes)
{
        static const char place[] = "/ublk/private/", deleted[] = "//deleted";
        size_t length = strlen(line->root);
        char device[32];

        snprintf(device, sizeof(device), "%u:%u", major(nodes), minor(nodes));
        return strcmp(line->device, device) == 0 && strstr(line->root, place) && length > strlen(deleted)
               && strcmp(line->root + length - strlen(deleted), deleted) == 0;
}

static bool is_local_type(const char *type)
{
        static const char *const types[] = {"tmpfs", "ext4", "xfs", "btrfs"};

        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
                if (strcmp(type, types[i]) == 0)
                        return true;
        return false;
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
        dev_t nodes; /* the file system of the nodes */
};

static void note_point(void *userdata, const struct mount_line *mount)
{
        const struct search *search = userdata;
        struct points *points = search->points;
        char *path = NULL;

        if (points->count == POINTS_MAX || !was_taken_back(mount, search->nodes))
                return;
        path = strdup(mount->point);
        if (path)
                points->items[points->count++] = (struct point){.path = path, .parent = mount->parent};
}

static void note_type(void *userdata, const struct mount_line *mount)
{
        struct points *points = userdata;

        for (size_t i = 0; i < points->count; i++)
                if (points->items[i].parent == mount->id)
                        points->items[i].is_local = is_local_type(mount->type);
}

/* ---- in a namespace ---- */

static int lookup(int parent, const char *path, int flags)
{
        const struct open_how how = {
                .flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
                .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED,
        };
        int fd = (int)syscall(SYS_openat2, parent, path, &how, sizeof(how));

        return fd < 0 ? -errno : fd;
}

/* Return a descriptor of the node at the place; -ESTALE: it is something else, or a node that is in use. */
static int open_node(int parent, const char *name, dev_t nodes)
{
        _cleanup_close_ int node = lookup(parent, name, O_NOFOLLOW);
        struct statx info;

        if (node < 0)
                return node;
        if (statx(node, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &info) < 0)
                return -errno;
        if (!S_ISBLK(info.stx_mode) || (info.stx_mode & 07777) != 0 || info.stx_nlink != 0
                || makedev(info.stx_dev_major, info.stx_dev_minor) != nodes
                || !(info.stx_attributes & STATX_ATTR_MOUNT_ROOT))
                return -ESTALE;
        return TAKE_FD(node);
}

/* As the user to whom the socket belongs, without a right: what ublkd has created as that user goes as that user. */
static int remove_place(const struct point *point, int parent, const char *name)
{
        _cleanup_close_ int place = lookup(parent, name, O_NOFOLLOW);
        const uint64_t change = RIGHT(CAP_SETUID);
        struct statx info;
        int r;

        if (place < 0)
                return place;
        if (statx(place, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &info) < 0)
                return -errno;
        if (!S_ISSOCK(info.stx_mode) || info.stx_nlink != 1 || info.stx_mnt_id != point->parent)
                return 0;
        r = rights_set(change, change);
        if (r >= 0 && setresuid(info.stx_uid, info.stx_uid, info.stx_uid) < 0)
                r = -errno;
        if (r >= 0)
                r = rights_hide();
        if (r >= 0)
                r = rights_set(change, 0);
        return r < 0 ? r : unlinkat(parent, name, 0) < 0 ? -errno : 0;
}

/* Unmount, and remove the place. The process has the right to change its user left. */
static int recall_point(const struct point *point, int proc, dev_t nodes)
{
        const uint64_t rights = RIGHT(CAP_SYS_ADMIN) | RIGHT(CAP_DAC_READ_SEARCH);
        char *name = strrchr(point->path, '/'), link[32];
        _cleanup_close_ int parent = -1, node = -1;
        int r = rights_set(rights | RIGHT(CAP_SETUID), rights);

        if (r < 0)
                return r;
        if (!name || name[1] == '\0')
                return 0;
        *name++ = '\0';
        parent = lookup(AT_FDCWD, *point->path ? point->path : "/", O_DIRECTORY);
        if (parent < 0)
                return parent;
        node = open_node(parent, name, nodes);
        if (node < 0)
                return node;
        snprintf(link, sizeof(link), "self/fd/%d", node);
        if (fchdir(proc) < 0)
                return -errno;
        if (umount2(link, MNT_DETACH) < 0)
                return errno == EINVAL ? 0
                                       : -errno; /* locked: a copy, which goes with the place of the other */
        return point->is_local ? remove_place(point, parent, name) : 0;
}

/* In a process of its own for each: afterwards that has the ids of another user. */
static int recall_apart(const struct point *point, int proc, dev_t nodes)
{
        int status = 0;
        pid_t pid = fork();

        if (pid == 0)
                _exit(rights_hide() < 0 || recall_point(point, proc, nodes) < 0 ? EXIT_FAILURE
                                                                                : EXIT_SUCCESS);
        if (pid < 0)
                return -errno;
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        return status == 0 ? 0 : -EIO;
}

static int enter_users(int users)
{
        const uint64_t rights = RIGHT(CAP_SYS_ADMIN) | RIGHT(CAP_DAC_READ_SEARCH) | RIGHT(CAP_SETUID);
        int r;

        if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0
                || setresgid(OVERFLOW_ID, OVERFLOW_ID, OVERFLOW_ID) < 0
                || setresuid(OVERFLOW_ID, OVERFLOW_ID, OVERFLOW_ID) < 0)
                return -errno;
        r = rights_set(RIGHT(CAP_SYS_ADMIN), RIGHT(CAP_SYS_ADMIN));
        if (r < 0)
                return r;
        if (setns(users, CLONE_NEWUSER) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        r = rights_set(rights, 0);
        return r < 0 ? r : rights_hide();
}

static int recall_here(int mounts, int users, dev_t nodes)
{
        static struct points points;
        struct search search = {.points = &points, .nodes = nodes};
        _cleanup_close_ int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        int r;

        if (proc < 0 || setns(mounts, CLONE_NEWNS) < 0)
                return -errno;
        r = each_mount(proc, note_point, &search);
        if (r >= 0 && points.count > 0)
                r = each_mount(proc, note_type, &points);
        if (r < 0 || points.count == 0)
                return r;
        r = enter_users(users);
        if (r < 0)
                return r;
        for (size_t i = points.count; i > 0; i--) { /* the last mount is on top */
                int error = recall_apart(&points.items[i - 1], proc, nodes);

                r = error < 0 ? error : r;
        }
        return r;
}

/* ---- all namespaces ---- */

struct namespaces {
        ino_t *seen;
        size_t count;
};

/* Return 1: it is new; 0; -ENOMEM. */
static int note_seen(struct namespaces *all, ino_t inode)
{
        ino_t *seen;

        for (size_t i = 0; i < all->count; i++)
                if (all->seen[i] == inode)
                        return 0;
        seen = reallocarray(all->seen, all->count + 1, sizeof(*seen));
        if (!seen)
                return -ENOMEM;
        all->seen = seen;
        all->seen[all->count++] = inode;
        return 1;
}

/* The container may stop its child, which is in its user namespace: then the child is killed. */
static int recall_in(int mounts, int users, dev_t nodes)
{
        struct pollfd end = {.events = POLLIN};
        siginfo_t info = {};
        int r;
        pid_t pid = fork();

        if (pid == 0)
                _exit(rights_hide() < 0 || recall_here(mounts, users, nodes) < 0 ? EXIT_FAILURE
                                                                                 : EXIT_SUCCESS);
        if (pid < 0)
                return -errno;
        end.fd = pidfd_open(pid, 0);
        r = end.fd < 0 ? -errno : poll(&end, 1, CHILD_MSEC) == 1 ? 0 : -ETIMEDOUT;
        if (r < 0)
                (void)kill(pid, SIGKILL);
        if (waitid(P_PID, (id_t)pid, &info, WEXITED) < 0)
                r = -errno;
        close_fd(end.fd);
        return r < 0 ? r : info.si_code == CLD_EXITED && info.si_status == 0 ? 0 : -EIO;
}

/* The process has ended, or is one that root does not look at: a security module protects it, and not a container of a
 * user. */
static bool is_beyond(int error)
{
        return error == ENOENT || error == ESRCH || error == EACCES || error == EPERM;
}

static int look_at(struct namespaces *all, const char *pid, dev_t nodes)
{
        char path[PATH_MAX];
        _cleanup_close_ int mounts = -1, users = -1;
        struct stat st;
        int r;

        snprintf(path, sizeof(path), "/proc/%s/ns/mnt", pid);
        mounts = open(path, O_RDONLY | O_CLOEXEC);
        if (mounts < 0 && is_beyond(errno))
                return 0;
        if (mounts < 0 || fstat(mounts, &st) < 0)
                return -errno;
        r = note_seen(all, st.st_ino);
        if (r <= 0)
                return r;
        users = ioctl(mounts, NS_GET_USERNS);
        if (users < 0)
                return -errno;
        r = namespace_is_ours(users, "user");
        return r != 0 ? (r < 0 ? r : 0) : recall_in(mounts, users, nodes);
}

static int recall_all(dev_t nodes)
{
        _cleanup_closedir_ DIR *proc = opendir("/proc");
        struct namespaces all = {};
        const struct dirent *entry;
        int error = 0;

        if (!proc)
                return -errno;
        while (errno = 0, (entry = readdir(proc))) {
                int r = isdigit((unsigned char)*entry->d_name) ? look_at(&all, entry->d_name, nodes) : 0;

                error = r < 0 ? r : error;
        }
        error = errno != 0 ? -errno : error;
        free(all.seen);
        return error;
}

int recall_process_main(void)
{
        struct stat nodes;

        (void)prctl(PR_SET_NAME, "ublkd-recall");
        (void)alarm(SECONDS_MAX); /* if the supervisor is gone, which kills it */
        (void)umask(077);
        if (rights_hide() < 0 || fstat(RECALL_NODES_FD, &nodes) < 0)
                return EXIT_FAILURE;
        return recall_all(nodes.st_dev) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
