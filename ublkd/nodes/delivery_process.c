/* SPDX-License-Identifier: MIT */
/* Delivers a node, or a mounted file system, into the mount namespace of a process.
 *
 * It begins as root of the host, and looks up nothing in the container as that: it takes the ids of the process, enters
 * its namespaces, and keeps one right, CAP_SYS_ADMIN in the user namespace of the process, for one call. The file
 * is created without any right, as the process could create it. A process with the user namespace of ublkd is refused: there
 * CAP_SYS_ADMIN is a right over the host. */
#include "ublkd/nodes/delivery_process.h"
#include "ublkd/nodes/delivery_wire.h"
#include "ublkd/nodes/mount_clone.h"
#include "ublkd/nodes/mount_users.h"
#include "ublkd/nodes/process_ids.h"
#include "ublkd/nodes/process_rights.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/namespace.h"
#include "ublkd/kernel/mount_line.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { PROC_PATH_SIZE = 64, SECONDS_MAX = 60 };

/* What is opened of the process, before anything changes. */
struct place {
        int proc; /* our own directory in /proc, which the container need not have */
        int root, mounts, users;
        int tree;   /* what is delivered, as a mount that is nowhere yet */
        int source; /* keeps the mount that it is a copy of from ending; -1: it is a node */
};

static struct delivery_report failed(enum delivery_outcome outcome, int error)
{
        return (struct delivery_report){.outcome = outcome, .error = error};
}

/* ---- where it is ---- */

static int open_of(pid_t pid, const char *name, int flags)
{
        char path[PROC_PATH_SIZE];
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
        fd = open(path, flags | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static bool lives(int pidfd)
{
        struct pollfd end = {.fd = pidfd, .events = POLLIN};

        return poll(&end, 1, 0) == 0;
}

static struct delivery_report open_place(struct delivery_order *order, struct place *place)
{
        int r, home;

        place->proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
        r = place->proc < 0 ? -errno : open_of(order->pid, "root", O_PATH | O_DIRECTORY);
        if (r >= 0) {
                place->root = r;
                r = open_of(order->pid, "ns/mnt", O_RDONLY);
        }
        if (r >= 0) {
                place->mounts = r;
                r = open_of(order->pid, "ns/user", O_RDONLY);
        }
        if (r >= 0) {
                place->users = r;
                r = order->uid == DELIVERY_IDS_OF_PROCESS
                            ? process_ids_read(order->pid, &order->uid, &order->gid)
                            : 0;
        }
        if (!lives(DELIVERY_PROCESS_FD)) /* then all of that was about another process */
                return failed(DELIVERY_ENDED, 0);
        if (r < 0)
                return failed(r == -ENOENT || r == -ESRCH ? DELIVERY_ENDED : DELIVERY_NOT_ENTERED, r);
        home = namespace_is_ours(place->mounts, "mnt");
        r = namespace_is_ours(place->users, "user");
        if (home < 0 || r < 0)
                return failed(DELIVERY_NOT_ENTERED, home < 0 ? home : r);
        if (home)
                return failed(DELIVERY_AT_HOME, 0);
        if (r || order->uid == 0)
                return failed(DELIVERY_WITHOUT_USERS, 0);
        return failed(DELIVERY_DONE, 0);
}

/* ---- what is delivered ---- */

/* Have the search for copies of the mount look at the containers of this user. The mount cannot end meanwhile. In a mount namespace that
 * has no such user the kernel lets nothing be mounted. */
static int note_user(const struct delivery_order *order, const struct place *place)
{
        _cleanup_close_ int users = ioctl(place->mounts, NS_GET_USERNS);
        uid_t owner;
        int r = users < 0 ? -errno : namespace_find_owner(users, &owner);

        return r <= 0 ? r : mount_users_add(order->mount, owner);
}

static struct delivery_report clone_source(const struct delivery_order *order, struct place *place)
{
        const struct mount_options options = {.read_only = order->read_only, .no_exec = order->no_exec};
        int r;

        place->tree = DELIVERY_TREE_FD;
        if (!*order->mount)
                return failed(DELIVERY_DONE, 0);
        place->source = mount_clone_source(order->mount, order->number);
        if (place->source < 0)
                return failed(DELIVERY_NO_MOUNT, place->source);
        r = note_user(order, place);
        if (r < 0)
                return failed(DELIVERY_NO_MOUNT, r);
        place->tree = mount_clone(place->source, order->mount, place->users, &options);
        return place->tree < 0 ? failed(DELIVERY_NOT_CLONED, place->tree) : failed(DELIVERY_DONE, 0);
}

/* ---- rights ---- */

static const uint64_t mount_right = RIGHT(CAP_SYS_ADMIN);

/* The ids are those of the host: they are taken before the user namespace is entered, in which the kernel shows others
 * for the same users. */
static int become(const struct delivery_order *order)
{
        int r;

        if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(order->group_count, order->groups) < 0
                || setresgid(order->gid, order->gid, order->gid) < 0
                || setresuid(order->uid, order->uid, order->uid) < 0)
                return -errno;
        r = rights_hide();
        return r < 0 ? r : rights_set(mount_right, mount_right);
}

/* Entering a user namespace gives all rights in it. */
static int enter(const struct delivery_order *order, const struct place *place)
{
        int r;

        if (setns(place->mounts, CLONE_NEWNS) < 0)
                return -errno;
        r = become(order);
        if (r < 0)
                return r;
        if (setns(place->users, CLONE_NEWUSER) < 0)
                return -errno;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        r = rights_set(mount_right, 0);
        return r < 0 ? r : rights_hide();
}

/* ---- the file ---- */

/* Open the directory of the path. No link is followed, also none of /proc. Return a descriptor or -errno. */
static int open_parent(const struct place *place, char *path, const char **ret_name)
{
        const struct open_how how = {
                .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
        };
        char *name = strrchr(path, '/');
        int fd;

        if (*path != '/' || name[1] == '\0' || strcmp(name + 1, ".") == 0 || strcmp(name + 1, "..") == 0)
                return -EINVAL;
        *name = '\0';
        fd = (int)syscall(SYS_openat2, place->root, *path ? path : "/", &how, sizeof(how));
        if (fd < 0)
                return -errno;
        *ret_name = name + 1;
        return fd;
}

/* Return whether other mount namespaces get what is mounted below the file's mount; -errno. Unlike a mount namespace of
 * another user namespace, one of the host may share mounts with that of the host. */
static int is_shared(const struct place *place, int file)
{
        _cleanup_free_ char *line = NULL;
        _cleanup_fclose_ FILE *list = NULL;
        _cleanup_close_ int fd = openat(place->proc, "mountinfo", O_RDONLY | O_CLOEXEC);
        struct mount_line mount;
        size_t size = 0;
        struct statx info;
        ssize_t n;

        if (fd < 0 || statx(file, "", AT_EMPTY_PATH, STATX_MNT_ID, &info) < 0)
                return -errno;
        list = fdopen(fd, "re");
        if (!list)
                return -errno;
        fd = -1;
        while ((n = getline(&line, &size, list)) > 0) {
                if (line[n - 1] == '\n')
                        line[n - 1] = '\0';
                if (mount_line_parse(line, &mount) >= 0 && mount.id == info.stx_mnt_id)
                        return mount.shared;
        }
        return -ENOENT;
}

/* Return whether the node was taken back meanwhile; then it does not stay mounted. One that is taken back later is found
 * by the search for its mounts (recall_process.c). */
static bool was_taken_back(const struct place *place)
{
        char link[32];
        struct stat st;

        if (place->source >= 0 || fstat(place->tree, &st) < 0 || (st.st_mode & 07777) != 0)
                return false;
        snprintf(link, sizeof(link), "fd/%d", place->tree);
        if (fchdir(place->proc) >= 0)
                (void)umount2(link, MNT_DETACH); /* it may not be mounted; else the search does it */
        return true;
}

static struct delivery_report mount_over(const struct place *place, int file)
{
        bool taken_back;
        int r = is_shared(place, file);

        if (r < 0)
                return failed(DELIVERY_NOT_MOUNTED, r);
        if (r > 0)
                return failed(DELIVERY_SHARED, 0);
        r = rights_set(mount_right, mount_right);
        if (r < 0)
                return failed(DELIVERY_NOT_MOUNTED, r);
        if (move_mount(place->tree, "", file, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
                r = -errno;
        taken_back = was_taken_back(place);
        if (rights_set(0, 0) < 0) /* the end of the process is near, and takes them */
                r = r < 0 ? r : -errno;
        if (taken_back)
                return failed(DELIVERY_TAKEN_BACK, 0);
        return failed(r < 0 ? DELIVERY_NOT_MOUNTED : DELIVERY_DONE, r);
}

/* Return whether it is a socket as a delivery leaves it, of this user. The user can have a program serve one that looks like it,
 * and then asks for a node over it. */
static bool is_place(const struct stat *st)
{
        return S_ISSOCK(st->st_mode) && (st->st_mode & 07777) == 0600 && st->st_size == 0
               && st->st_uid == geteuid();
}

/* Create what the node is mounted on, or take what an earlier delivery has left. It is a socket, which nothing can open: where
 * a node was, no program may find a file that it writes to instead. Return a descriptor; -EEXIST: something else is there; other
 * -errno. */
static int create_place(int parent, const char *name, bool *ret_created)
{
        _cleanup_close_ int file = -1;
        struct stat st;

        *ret_created = mknodat(parent, name, S_IFSOCK | 0600, 0) >= 0;
        if (!*ret_created && errno != EEXIST)
                return -errno;
        file = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (file < 0 || fstat(file, &st) < 0)
                return -errno;
        return is_place(&st) ? TAKE_FD(file) : -EEXIST;
}

static bool is_empty(int parent, const char *name)
{
        int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        _cleanup_closedir_ DIR *directory = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        if (!directory) {
                close_fd(fd);
                return false;
        }
        while (errno = 0, (entry = readdir(directory)))
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        return false;
        return errno == 0;
}

/* Create the directory for a file system, or take one of the user that is empty: nothing is covered but that. Return a
 * descriptor; -EEXIST: something else is there; other -errno. */
static int create_directory(int parent, const char *name, bool *ret_created)
{
        _cleanup_close_ int directory = -1;
        struct statx info;

        *ret_created = mkdirat(parent, name, 0700) >= 0;
        if (!*ret_created && errno != EEXIST)
                return -errno;
        directory = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (directory < 0)
                return errno == ENOTDIR || errno == ELOOP ? -EEXIST : -errno;
        if (statx(directory, "", AT_EMPTY_PATH, STATX_UID, &info) < 0)
                return -errno;
        return info.stx_uid == geteuid() && !(info.stx_attributes & STATX_ATTR_MOUNT_ROOT)
                               && is_empty(parent, name)
                       ? TAKE_FD(directory)
                       : -EEXIST;
}

static struct delivery_report put(const struct place *place, char *path)
{
        const char *name = NULL;
        struct delivery_report report;
        _cleanup_close_ int parent = open_parent(place, path, &name), file = -1;
        bool created;

        if (parent < 0)
                return failed(DELIVERY_NO_FILE, parent);
        file = place->source < 0 ? create_place(parent, name, &created)
                                 : create_directory(parent, name, &created);
        if (file < 0)
                return failed(DELIVERY_NO_FILE, file);
        report = mount_over(place, file);
        if (report.outcome != DELIVERY_DONE && created)
                (void)unlinkat(parent, name,
                        place->source < 0 ? 0 : AT_REMOVEDIR); /* the caller learns of the first failure */
        return report;
}

/* ---- the process ---- */

static struct delivery_report deliver(struct delivery_order *order)
{
        struct place place = {.proc = -1, .root = -1, .mounts = -1, .users = -1, .tree = -1, .source = -1};
        struct delivery_report report = open_place(order, &place);
        int r;

        if (report.outcome == DELIVERY_DONE)
                report = clone_source(order, &place);
        if (report.outcome != DELIVERY_DONE)
                return report;
        r = enter(order, &place);
        report = r < 0 ? failed(DELIVERY_NOT_ENTERED, r) : put(&place, order->path);
        close_fd(place.tree); /* from the report on, nothing of this process keeps a mount in use */
        close_fd(place.source);
        return report;
}

/* A process of the same user may stop this one, or its file system may not answer: the supervisor kills it. If that is
 * gone as well, this ends it. */
static void limit_time(void)
{
        (void)alarm(SECONDS_MAX);
}

int delivery_process_main(void)
{
        static struct delivery_order order;
        struct delivery_report report;
        ssize_t n;

        (void)prctl(PR_SET_NAME, "ublkd-delivery");
        limit_time();
        (void)umask(077);
        if (rights_hide() < 0 || setrlimit(RLIMIT_CORE, &(const struct rlimit){}) < 0)
                return EXIT_FAILURE;
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                close_fd(fd);
        n = recv(DELIVERY_LINK_FD, &order, sizeof(order), 0);
        if (n != sizeof(order) || order.group_count > DELIVERY_GROUPS_MAX
                || !memchr(order.path, '\0', sizeof(order.path))
                || !memchr(order.mount, '\0', sizeof(order.mount))
                || !memchr(order.number, '\0', sizeof(order.number)))
                return EXIT_FAILURE;
        report = deliver(&order);
        n = send(DELIVERY_LINK_FD, &report, sizeof(report), MSG_NOSIGNAL);
        return n == sizeof(report) ? EXIT_SUCCESS : EXIT_FAILURE;
}
