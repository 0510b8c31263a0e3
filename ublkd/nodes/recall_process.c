/* SPDX-License-Identifier: MIT */
/* Unmounts nodes that were taken back, in each mount namespace that a user has made.
 *
 * A node that was taken back has no name and no rights any more, and never gets them again: so each mount of such a node may
 * go, by whatever process it was made, and it does not matter how the search has found it. The search reads what the kernel writes of the
 * mounts, not what the container does: it begins with a process of each namespace, and a child for each enters it.
 *
 * The child has no right over the host: it has the ids of no user there, and it is root of the container in what it looks up. It
 * follows no link, and asks no file system of the container: it looks up only what the kernel has in memory, and has statx(2)
 * ask none (AT_STATX_DONT_SYNC).
 * It judges what it has opened, unmounts that, and removes nothing. A mount that is covered, or that is moved meanwhile, stays.
 *
 * A container may stop the child, which is in its user namespace: all containers of a user have the time of one child
 * together, so no user takes the time of others. */
#include "ublkd/nodes/recall_process.h"
#include "ublkd/nodes/process_rights.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>

#define NAME "ublkd-recall"

enum {
        OVERFLOW_ID = 65534,
        OWNER_MSEC = 2000, /* for all containers of a user */
        KILL_MSEC = 200,   /* until a child that was killed has ended */
        SECONDS_MAX = 60,
        POINTS_MAX = 1024,
        TRIES = 8, /* of a look-up: a rename anywhere disturbs it */
};

/* ---- what is mounted ---- */

/* A place at which a node is mounted that was taken back. */
struct point {
        char *path;
        uint64_t mount;
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
                points->items[points->count++] = (struct point){.path = path, .mount = mount->id};
}

/* ---- in a namespace ---- */

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

/* Return whether the file is the node of that mount, and was taken back. Nothing but the mount and its device is asked before it is
 * certain that these are those of the nodes. */
static bool is_node_at(int file, const struct point *point, dev_t nodes)
{
        struct statx info;

        if (look(file, STATX_MNT_ID, &info) < 0 || !(info.stx_mask & STATX_MNT_ID)
                || info.stx_mnt_id != point->mount || makedev(info.stx_dev_major, info.stx_dev_minor) != nodes
                || !(info.stx_attributes & STATX_ATTR_MOUNT_ROOT))
                return false;
        return look(file, STATX_MODE | STATX_TYPE | STATX_NLINK, &info) >= 0 && S_ISBLK(info.stx_mode)
               && (info.stx_mode & 07777) == 0 && info.stx_nlink == 0;
}

/* The container decides what is at the place: something else there does not count as a failure. A mount that is locked (EINVAL) is a
 * copy of the mount, in a container in a container. */
static int recall_point(const struct point *point, int proc, dev_t nodes)
{
        _cleanup_close_ int node = lookup(AT_FDCWD, point->path, O_NOFOLLOW);
        char link[32];

        if (node < 0 || !is_node_at(node, point, nodes))
                return 0;
        snprintf(link, sizeof(link), "self/fd/%d", node);
        if (fchdir(proc) < 0)
                return -errno;
        return umount2(link, MNT_DETACH) < 0 && errno != EINVAL ? -errno : 0;
}

static int enter_users(int users)
{
        const uint64_t rights = RIGHT(CAP_SYS_ADMIN) | RIGHT(CAP_DAC_READ_SEARCH);
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
        r = rights_set(rights, rights);
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
        if (r < 0 || points.count == 0)
                return r;
        r = enter_users(users);
        if (r < 0)
                return r;
        for (size_t i = points.count; i > 0; i--) { /* the last mount is on top */
                int error = recall_point(&points.items[i - 1], proc, nodes);

                r = error < 0 ? error : r;
        }
        return r;
}

/* ---- all namespaces ---- */

/* A user who has containers. */
struct owner {
        uid_t uid;
        int left_msec; /* for the containers that were not looked at yet */
};

struct search_all {
        dev_t nodes;
        ino_t *seen; /* mount namespaces */
        size_t seen_count;
        struct owner *owners;
        size_t owner_count;
        bool hindered;
};

/* Return 1: it is new; 0; -ENOMEM. */
static int note_seen(struct search_all *all, ino_t inode)
{
        ino_t *seen;

        for (size_t i = 0; i < all->seen_count; i++)
                if (all->seen[i] == inode)
                        return 0;
        seen = reallocarray(all->seen, all->seen_count + 1, sizeof(*seen));
        if (!seen)
                return -ENOMEM;
        all->seen = seen;
        all->seen[all->seen_count++] = inode;
        return 1;
}

/* Return NULL if there is no memory. It stays valid until the next call. */
static struct owner *owner_of(struct search_all *all, uid_t uid)
{
        struct owner *owners;

        for (size_t i = 0; i < all->owner_count; i++)
                if (all->owners[i].uid == uid)
                        return &all->owners[i];
        owners = reallocarray(all->owners, all->owner_count + 1, sizeof(*owners));
        if (!owners)
                return NULL;
        all->owners = owners;
        owners[all->owner_count] = (struct owner){.uid = uid, .left_msec = OWNER_MSEC};
        return &owners[all->owner_count++];
}

/* Find the user of the host who has made the user namespace, or the one around it. Return 1; 0: it is ours, or not in ours;
 * -errno. */
static int find_owner(int users, uid_t *ret)
{
        _cleanup_close_ int outer = -1;
        int r = namespace_is_ours(users, "user"), fd = users;

        if (r != 0)
                return r < 0 ? r : 0;
        while (r == 0) {
                int parent = ioctl(fd, NS_GET_PARENT);

                if (parent < 0)
                        return errno == EPERM ? 0 : -errno;
                r = namespace_is_ours(parent, "user");
                if (r != 0) {
                        close_fd(parent);
                        break;
                }
                close_fd(outer);
                fd = outer = parent;
        }
        return r < 0 ? r : ioctl(fd, NS_GET_OWNER_UID, ret) < 0 ? -errno : 1;
}

static int64_t now_msec(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Return 0; -ETIMEDOUT: it was killed, and may not have ended; -EIO: it has failed; other -errno. */
static int wait_for_child(pid_t pid, int msec)
{
        _cleanup_close_ int fd = pidfd_open(pid, 0);
        struct pollfd end = {.fd = fd, .events = POLLIN};
        siginfo_t info = {};
        int r = fd < 0 ? -errno : poll(&end, 1, msec) == 1 ? 0 : -ETIMEDOUT;

        if (r < 0) {
                (void)kill(pid, SIGKILL);
                (void)poll(&end, 1, KILL_MSEC);
        }
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG) < 0)
                return -errno;
        return r < 0 ? r : info.si_code == CLD_EXITED && info.si_status == 0 ? 0 : -EIO;
}

/* A child that a container kills has failed as one that it stops. */
static int recall_in(struct search_all *all, struct owner *owner, int mounts, int users)
{
        int64_t begin = now_msec(), took;
        int r;
        pid_t pid = fork();

        if (pid == 0)
                _exit(rights_hide() < 0 || recall_here(mounts, users, all->nodes) < 0 ? EXIT_FAILURE
                                                                                      : EXIT_SUCCESS);
        if (pid < 0)
                return -errno;
        r = wait_for_child(pid, owner->left_msec);
        took = now_msec() - begin;
        owner->left_msec = r == -ETIMEDOUT || took >= owner->left_msec ? 0 : owner->left_msec - (int)took;
        if (r == -ETIMEDOUT || r == -EIO)
                all->hindered = true;
        return r == -ETIMEDOUT || r == -EIO ? 0 : r;
}

/* The process has ended, or is one that root does not look at: a security module protects it, and not a container of a
 * user. */
static bool is_beyond(int error)
{
        return error == ENOENT || error == ESRCH || error == EACCES || error == EPERM;
}

/* Return a descriptor; -ENOENT: there is nothing to look at; other -errno. */
static int open_namespace(pid_t pid, const char *name)
{
        char path[64];
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd >= 0 ? fd : is_beyond(errno) ? -ENOENT : -errno;
}

static int look_at(struct search_all *all, pid_t pid)
{
        _cleanup_close_ int mounts = open_namespace(pid, "mnt"), users = -1;
        struct owner *owner;
        struct stat st;
        uid_t uid;
        int r;

        if (mounts < 0)
                return mounts == -ENOENT ? 0 : mounts;
        if (fstat(mounts, &st) < 0)
                return -errno;
        r = note_seen(all, st.st_ino);
        if (r <= 0)
                return r;
        users = ioctl(mounts, NS_GET_USERNS);
        if (users < 0)
                return -errno;
        r = find_owner(users, &uid);
        if (r <= 0)
                return r;
        owner = owner_of(all, uid);
        if (!owner)
                return -ENOMEM;
        if (owner->left_msec > 0)
                return recall_in(all, owner, mounts, users);
        all->hindered = true;
        return 0;
}

static bool has_our_name(pid_t pid)
{
        char path[32], name[32];

        snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
        return read_line_at(AT_FDCWD, path, name, sizeof(name)) >= 0 && strcmp(name, NAME) == 0;
}

/* Return whether it is the child of a look that has ended: no program of a container has its uid. */
static bool is_left_over(pid_t pid)
{
        _cleanup_free_ char *line = NULL;
        _cleanup_fclose_ FILE *status = NULL;
        int parent = 0;
        unsigned uid = 0;
        size_t size = 0;
        char path[32], state = 'Z';

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        status = fopen(path, "re");
        while (status && getline(&line, &size, status) > 0)
                (void)(sscanf(line, "State: %c", &state) == 1 || sscanf(line, "PPid: %d", &parent) == 1
                        || sscanf(line, "Uid: %u", &uid) == 1);
        return state != 'Z' && state != 'X' && parent > 0 && uid == OVERFLOW_ID && !has_our_name(parent);
}

/* End a child that an earlier look could not end, as a container had stopped it, or as it waits for a file system. Its user gets no other
 * one from this look: it may still be there. */
static int end_left_over(struct search_all *all, pid_t pid)
{
        _cleanup_close_ int fd = -1, users = -1;
        struct owner *owner;
        uid_t uid;
        int r;

        if (!has_our_name(pid))
                return 0;
        fd = pidfd_open(pid, 0);
        if (fd < 0 || !is_left_over(pid))
                return 0;
        users = open_namespace(pid, "user");
        if (users < 0)
                return users == -ENOENT ? 0 : users;
        r = find_owner(users, &uid);
        if (r <= 0)
                return r;
        (void)pidfd_send_signal(fd, SIGKILL, NULL, 0);
        owner = owner_of(all, uid);
        if (!owner)
                return -ENOMEM;
        owner->left_msec = 0;
        return 0;
}

struct pids {
        pid_t *items;
        size_t count;
};

static int list_processes(struct pids *ret)
{
        _cleanup_closedir_ DIR *proc = opendir("/proc");
        const struct dirent *entry;

        if (!proc)
                return -errno;
        while (errno = 0, (entry = readdir(proc))) {
                pid_t *items;

                if (!isdigit((unsigned char)*entry->d_name))
                        continue;
                items = reallocarray(ret->items, ret->count + 1, sizeof(*items));
                if (!items)
                        return -ENOMEM;
                ret->items = items;
                items[ret->count++] = (pid_t)strtol(entry->d_name, NULL, 10);
        }
        return -errno;
}

/* Begin somewhere else each time: what a deadline has kept from one look, another one reaches. */
static int recall_all(struct search_all *all)
{
        struct pids pids = {};
        int error = list_processes(&pids);
        size_t first = pids.count > 0 ? (size_t)now_msec() % pids.count : 0;

        for (size_t i = 0; error >= 0 && i < pids.count; i++)
                error = end_left_over(all, pids.items[i]);
        for (size_t i = 0; i < pids.count; i++) {
                int r = look_at(all, pids.items[(first + i) % pids.count]);

                error = r < 0 ? r : error;
        }
        free(pids.items);
        free(all->seen);
        free(all->owners);
        return error;
}

static int prepare(struct search_all *all)
{
        struct stat nodes;

        (void)prctl(PR_SET_NAME, NAME);
        (void)alarm(SECONDS_MAX); /* if the supervisor is gone, which kills it */
        if (rights_hide() < 0 || setrlimit(RLIMIT_CORE, &(const struct rlimit){}) < 0
                || fstat(RECALL_NODES_FD, &nodes) < 0)
                return -errno;
        all->nodes = nodes.st_dev;
        for (int fd = STDIN_FILENO; fd <= RECALL_NODES_FD; fd++)
                close_fd(fd); /* no container gets at them */
        return 0;
}

int recall_process_main(void)
{
        struct search_all all = {};

        if (prepare(&all) < 0 || recall_all(&all) < 0)
                return EXIT_FAILURE;
        return all.hindered ? RECALL_HINDERED : EXIT_SUCCESS;
}
