/* SPDX-License-Identifier: MIT */
/* Unmounts what was taken back, in each mount namespace that a user has made: nodes of disks, and file systems.
 *
 * A node that was taken back has no name and no rights any more, and never gets them again: so each mount of such a node may
 * go, by whatever process it was made, and it does not matter how the search has found it. So may each mount of a file system whose
 * mount on the host ends. The search reads what the kernel writes of the
 * mounts, not what the container does: it begins with a process of each namespace, and a child for each enters it
 * (recall_here.c).
 *
 * A container may stop the child, which is in its user namespace. So all containers of a user have two seconds together, and
 * these in rounds: first a short time for each user, and then more for those who have needed it. Users who stop all their
 * children keep the look from the containers of others for the first round only. Each user has places of its own in the later
 * rounds. A child may be read by its container, so it closes the namespaces of others first. */
#include "ublkd/nodes/recall_process.h"
#include "ublkd/nodes/met_namespaces.h"
#include "ublkd/nodes/mount_users.h"
#include "ublkd/nodes/process_rights.h"
#include "ublkd/nodes/recall_here.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"
#include "ublkd/kernel/proc_status.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define NAME "ublkd-recall"

enum {
        OWNER_MSEC = 2000, /* for all containers of a user */
        KILL_MSEC = 200,   /* until a child that was killed has ended */
        SECONDS_MAX = 60,
        MOUNTS_SECONDS = 10, /* a request waits for it */
        CHILD_SECONDS = 3,   /* of a child whose parent has died, which would kill it earlier */
        STATUS_SIZE = 1024,  /* what is read of /proc/PID/status: the ids stand before what can be long */
        ASIDE_MAX = 32,      /* containers of a user, for each later round: more wait for the next look */
};

/* What a user has in each round, of what is left. */
static const int round_msec[] = {200, 600, OWNER_MSEC};

/* ---- all namespaces ---- */

/* A user who has containers. */
struct owner {
        uid_t uid;
        int left_msec;  /* for the containers that were not looked at yet */
        unsigned round; /* in which these are looked at: not in this one, if it is later */
        unsigned aside; /* containers that were set aside for the next round */
        bool lingers;   /* a child was killed, and has not ended: there is no other one beside it */
};

/* A container for a later round. */
struct aside {
        uid_t uid;
        int mounts, users; /* namespaces; owned */
};

struct search_all {
        struct recall_wish wish;
        const struct mount_users *users; /* whose containers are looked at; NULL: all */
        struct met_namespaces met;
        struct owner *owners;
        size_t owner_count;
        struct aside *aside;
        size_t aside_count;
        unsigned round;
        bool hindered, busy, found;
};

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

static int64_t now_msec(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Return what a process has found out, by its end. */
static int result_of(const siginfo_t *info)
{
        static const int results[] = {
                [EXIT_SUCCESS] = 0,
                [RECALL_HINDERED] = -ETIMEDOUT,
                [RECALL_BUSY] = -EBUSY,
                [RECALL_FOUND] = -EEXIST,
        };
        bool is_known = info->si_code == CLD_EXITED && info->si_status != EXIT_FAILURE && info->si_status >= 0
                        && info->si_status < (int)ARRAY_SIZE(results);

        return is_known ? results[info->si_status] : -EIO;
}

/* Return 0; -EBUSY: a process uses what is mounted; -EEXIST: it has found a copy; -ETIMEDOUT: it was killed, and has ended;
 * -EINPROGRESS: it was killed, and has not ended; -EIO: it has failed; other -errno. */
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
        if (info.si_pid == 0)
                return -EINPROGRESS;
        return r < 0 ? r : result_of(&info);
}

static int exit_status_of(int error)
{
        return error == -EBUSY    ? RECALL_BUSY
               : error == -EEXIST ? RECALL_FOUND
               : error < 0        ? EXIT_FAILURE
                                  : EXIT_SUCCESS;
}

/* Close the namespaces of other users: a container may read the descriptors of the child. */
static void close_aside(const struct search_all *all)
{
        for (size_t i = 0; i < all->aside_count; i++) {
                close_fd(all->aside[i].mounts);
                close_fd(all->aside[i].users);
        }
}

static int recall_as_child(const struct search_all *all, int mounts, int users)
{
        close_aside(all);
        (void)alarm(CHILD_SECONDS); /* a change of ids takes PR_SET_PDEATHSIG away for a moment */
        return rights_hide() < 0 ? -EPERM : recall_here(mounts, users, &all->wish);
}

/* A child that a container kills has failed as one that it stops. Return 0; -EAGAIN: the time of this round was not enough;
 * -ETIMEDOUT: nor will that of another one be; other -errno. */
static int recall_in(struct search_all *all, struct owner *owner, int mounts, int users)
{
        int slice = owner->left_msec < round_msec[all->round] ? owner->left_msec : round_msec[all->round], r;
        int64_t begin = now_msec(), took;
        pid_t pid = fork();

        if (pid == 0)
                _exit(exit_status_of(recall_as_child(all, mounts, users)));
        if (pid < 0)
                return -errno;
        r = wait_for_child(pid, slice);
        took = r == -ETIMEDOUT || r == -EINPROGRESS ? slice : now_msec() - begin;
        owner->left_msec = took >= owner->left_msec ? 0 : owner->left_msec - (int)took;
        owner->lingers = owner->lingers || r == -EINPROGRESS;
        all->busy = all->busy || r == -EBUSY;
        all->found = all->found || r == -EEXIST;
        if (r == -ETIMEDOUT && owner->left_msec > 0 && all->round + 1 < ARRAY_SIZE(round_msec))
                return -EAGAIN;
        return r == -EBUSY || r == -EEXIST ? 0 : r == -EIO || r == -EINPROGRESS ? -ETIMEDOUT : r;
}

/* Take the descriptors for the next round. Return 0; -ETIMEDOUT: the owner has enough there; -ENOMEM. */
static int set_aside(struct search_all *all, struct owner *owner, int *mounts, int *users)
{
        struct aside *aside;

        if (owner->aside == ASIDE_MAX)
                return -ETIMEDOUT;
        aside = reallocarray(all->aside, all->aside_count + 1, sizeof(*aside));
        if (!aside)
                return -ENOMEM;
        all->aside = aside;
        aside[all->aside_count++] =
                (struct aside){.uid = owner->uid, .mounts = TAKE_FD(*mounts), .users = TAKE_FD(*users)};
        owner->aside++;
        owner->round = all->round + 1;
        return 0;
}

/* Look at a container of the owner, or set it aside: then the descriptors are taken. Return 0 or -errno. */
static int recall_in_turn(struct search_all *all, struct owner *owner, int *mounts, int *users)
{
        int r = owner->left_msec == 0 || owner->lingers ? -ETIMEDOUT
                : owner->round > all->round             ? -EAGAIN
                                                        : recall_in(all, owner, *mounts, *users);

        if (r == -EAGAIN)
                r = set_aside(all, owner, mounts, users);
        if (r == -ETIMEDOUT)
                all->hindered = true;
        return r == -ETIMEDOUT ? 0 : r;
}

/* Return whether what was found decides the search. */
static bool is_decided(const struct search_all *all)
{
        return all->busy || all->found;
}

/* Look at what the last round has set aside. It may set some of that aside again: the oldest is removed from the list before
 * it is looked at, so that its child has no descriptor twice. */
static int recall_aside(struct search_all *all)
{
        size_t count = all->aside_count;
        int error = 0;

        for (size_t i = 0; i < all->owner_count; i++)
                all->owners[i].aside = 0;
        for (; count > 0 && !is_decided(all); count--) {
                struct aside aside = all->aside[0];
                struct owner *owner = owner_of(all, aside.uid);
                int r;

                memmove(all->aside, all->aside + 1, --all->aside_count * sizeof(aside));
                r = owner ? recall_in_turn(all, owner, &aside.mounts, &aside.users) : -ENOMEM;
                close_fd(aside.mounts);
                close_fd(aside.users);
                error = r < 0 ? r : error;
        }
        return error;
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
        uid_t uid;
        int r;

        if (mounts < 0)
                return mounts == -ENOENT ? 0 : mounts;
        r = met_namespaces_add(&all->met, mounts);
        if (r <= 0)
                return r;
        users = ioctl(mounts, NS_GET_USERNS);
        if (users < 0)
                return -errno;
        r = met_namespaces_find_owner(&all->met, users, &uid);
        if (r <= 0 || (all->users && !mount_users_has(all->users, uid)))
                return r < 0 ? r : 0;
        owner = owner_of(all, uid);
        if (!owner)
                return -ENOMEM;
        return recall_in_turn(all, owner, &mounts, &users);
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
        char path[32], status[STATUS_SIZE];
        const char *state;
        int64_t parent;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        if (read_text_at(AT_FDCWD, path, status, sizeof(status)) < 0)
                return false;
        state = proc_status_field(status, "State");
        parent = proc_status_number(status, "PPid", 0);
        return state && state[1] != 'Z' && state[1] != 'X' && parent > 0
               && proc_status_number(status, "Uid", 0) == RECALL_ID && !has_our_name((pid_t)parent);
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
        r = met_namespaces_find_owner(&all->met, users, &uid);
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
        unsigned start = 0;
        size_t first;

        if (getrandom(&start, sizeof(start), GRND_NONBLOCK) != sizeof(start))
                start = 0;
        first = pids.count > 0 ? start % pids.count : 0;
        for (size_t i = 0; error >= 0 && i < pids.count; i++)
                error = end_left_over(all, pids.items[i]);
        for (size_t i = 0; i < pids.count && !is_decided(all); i++) {
                int r = look_at(all, pids.items[(first + i) % pids.count]);

                error = r < 0 ? r : error;
        }
        for (all->round = 1; all->round < ARRAY_SIZE(round_msec); all->round++) {
                int r = recall_aside(all);

                error = r < 0 ? r : error;
        }
        close_aside(all);
        free(pids.items);
        met_namespaces_clear(&all->met);
        free(all->owners);
        free(all->aside);
        return error;
}

/* Two for each container that is set aside. */
static int take_all_descriptors(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return -errno;
        limit.rlim_cur = limit.rlim_max;
        return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

/* No container gets at descriptors of the host. */
static int prepare(unsigned seconds)
{
        (void)prctl(PR_SET_NAME, NAME);
        (void)alarm(seconds); /* if the supervisor is gone, which kills it */
        if (rights_hide() < 0 || setrlimit(RLIMIT_CORE, &(const struct rlimit){}) < 0
                || take_all_descriptors() < 0 || close_range(STDIN_FILENO, UINT_MAX, 0) < 0)
                return -errno;
        return 0;
}

int recall_process_main(void)
{
        struct search_all all = {};
        struct stat nodes;

        if (fstat(RECALL_NODES_FD, &nodes) < 0 || prepare(SECONDS_MAX) < 0)
                return EXIT_FAILURE;
        all.wish.device = nodes.st_dev;
        if (recall_all(&all) < 0)
                return EXIT_FAILURE;
        return all.hindered ? RECALL_HINDERED : EXIT_SUCCESS;
}

/* A process with the name of these, so that another search does not take the children for those of one that has ended. What was found
 * counts, whatever has failed beside it. */
static void recall_mounts_in_child(dev_t disk, const char *mount, enum recall_what what, pid_t parent)
{
        struct search_all all = {
                .wish = {.what = what, .device = disk}
        };
        struct mount_users users = {};
        int r = prepare(MOUNTS_SECONDS);

        if (r >= 0 && getppid() != parent) /* it has died before the child was to die with it */
                r = -ESRCH;
        if (r >= 0 && mount)
                r = mount_users_read(mount, &users);
        if (r > 0)
                all.users = &users;
        if (r == 0 || (r > 0 && users.count > 0))
                r = recall_all(&all);
        _exit(all.busy         ? RECALL_BUSY
                : all.found    ? RECALL_FOUND
                : r < 0        ? EXIT_FAILURE
                : all.hindered ? RECALL_HINDERED
                               : EXIT_SUCCESS);
}

int recall_mounts(dev_t disk, const char *mount, enum recall_what what)
{
        siginfo_t info = {};
        pid_t self = getpid(), pid = fork();

        if (pid == 0)
                recall_mounts_in_child(disk, mount, what, self);
        if (pid < 0 || waitid(P_PID, (id_t)pid, &info, WEXITED) < 0)
                return -errno;
        return info.si_code == CLD_KILLED && info.si_status == SIGALRM ? -ETIMEDOUT : result_of(&info);
}
