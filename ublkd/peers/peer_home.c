/* SPDX-License-Identifier: MIT */
/* Whether the process that connected to a Unix socket runs on this host itself, or in a container. */
#include "ublkd/peers/peer_home.h"

#include "ublkd/peers/peer_process.h"

#include <errno.h>
#include <fcntl.h>
#include "ublkd/base/cleanup.h"

#include <linux/nsfs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

enum { PROC_PATH_SIZE = 64 };

/* Identify what `name` in /proc/PID leads to. Asks no file system that has to answer: the root directory may be on one
 * that a user serves. Return 0 or -errno. */
static int identify(const char *process, const char *name, struct statx *ret)
{
        char path[PROC_PATH_SIZE];

        snprintf(path, sizeof(path), "/proc/%s/%s", process, name);
        return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO, ret) < 0 ? -errno : 0;
}

/* Return 1 if `name` of the process and of this one lead to the same thing, 0 if not; -errno. */
static int is_shared(const char *process, const char *name)
{
        struct statx theirs, ours;
        int r = identify(process, name, &theirs);

        if (r >= 0)
                r = identify("self", name, &ours);
        if (r < 0)
                return r;
        return theirs.stx_ino == ours.stx_ino && theirs.stx_dev_major == ours.stx_dev_major
               && theirs.stx_dev_minor == ours.stx_dev_minor;
}

/* Return 1 if the root directory of the process is that of this one, 0 if not; -errno. A container may have the root
 * directory of the host mounted somewhere, and make it its own with chroot(): then that directory has a parent. */
static int has_root_of_host(const char *process)
{
        int r = is_shared(process, "root");

        return r > 0 ? is_shared(process, "root/..") : r;
}

/* Return 1 if the process has the PIDs of this host, and its file systems or its root directory, 0 if not; -errno. */
static int is_at_home(const char *process)
{
        int r = is_shared(process, "ns/pid");

        if (r <= 0)
                return r;
        r = is_shared(process, "ns/mnt");
        return r != 0 ? r : has_root_of_host(process);
}

/* Return 1 if the namespace is the one that `name` of this process leads to, 0 if not; -errno. */
static int is_ours(int namespace, const char *name)
{
        struct stat theirs;
        struct statx ours;
        int r = identify("self", name, &ours);

        if (r < 0 || fstat(namespace, &theirs) < 0)
                return r < 0 ? r : -errno;
        return theirs.st_ino == ours.stx_ino; /* all namespaces are on one file system */
}

/* Return 1 if the namespace belongs to the user namespace of this process, 0 if not; -errno. */
static int belongs_to_host(int namespace)
{
        _cleanup_close_ int owner = ioctl(namespace, NS_GET_USERNS);

        return owner < 0 ? -errno : is_ours(owner, "ns/user");
}

static int open_namespace(const char *process, const char *name)
{
        char path[PROC_PATH_SIZE];
        int fd;

        snprintf(path, sizeof(path), "/proc/%s/%s", process, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* Return 1 if a PID namespace around the process was made without a user namespace, 0 if none was; -errno. */
static int is_in_pids_of_root(const char *process)
{
        int fd = open_namespace(process, "ns/pid"), parent, r = fd;

        while (r >= 0) {
                r = is_ours(fd, "ns/pid");
                if (r != 0) { /* so none was, up to here */
                        r = r > 0 ? 0 : r;
                        break;
                }
                r = belongs_to_host(fd);
                if (r != 0)
                        break;
                parent = ioctl(fd, NS_GET_PARENT);
                if (parent < 0)
                        r = -errno;
                close_fd(fd);
                fd = parent;
        }
        close_fd(fd);
        return r;
}

/* Return 1 if the process may be in a container that was made without a user namespace, by its mounts; 0 if not; -errno. With
 * the PIDs of the host only the root directory of the host shows that it is not: a mount namespace does not show which one it
 * was copied from. */
static int is_in_mounts_of_root(const char *process)
{
        _cleanup_close_ int fd = open_namespace(process, "ns/mnt");
        int r = fd < 0 ? fd : is_ours(fd, "ns/mnt");

        if (r != 0)
                return r > 0 ? 0 : r;
        r = belongs_to_host(fd);
        if (r == 0)
                r = is_shared(process, "ns/pid");
        if (r <= 0)
                return r;
        r = has_root_of_host(process);
        return r < 0 ? r : !r;
}

/* Return 1 if a user of the namespace of the process is user 0 of the host, 0 if not; -errno. Such a namespace translates
 * nothing, or nearly so: its root can be any user in there, and each is the one of the host with that number. */
static int maps_root_of_host(const char *process)
{
        char path[PROC_PATH_SIZE];
        unsigned long inside, outside, count;
        bool maps = false;
        FILE *file;
        int n, r;

        snprintf(path, sizeof(path), "/proc/%s/uid_map", process);
        file = fopen(path, "re");
        if (!file)
                return -errno;
        while ((n = fscanf(file, "%lu %lu %lu", &inside, &outside, &count)) == 3)
                maps = maps || outside == 0;
        r = n != EOF || ferror(file) ? -EIO : maps;
        (void)fclose(file);
        return r;
}

/* Return 1 if the user namespace of the process was not made in that of this process, 0 if it was; -errno. A namespace in
 * between may map any user of the host, whom its root can be: this process cannot see that, if no process is in there. */
static int is_nested(const char *process)
{
        _cleanup_close_ int fd = open_namespace(process, "ns/user"),
                            parent = fd < 0 ? fd : ioctl(fd, NS_GET_PARENT);
        int r;

        if (fd < 0 || parent < 0)
                return fd < 0 ? fd : -errno;
        r = is_ours(parent, "ns/user");
        return r < 0 ? r : !r;
}

/* Of a process in another user namespace. Return an enum peer_home, or -errno. */
static int home_of_mapped(const char *process)
{
        int r = maps_root_of_host(process);

        if (r == 0)
                r = is_nested(process);
        if (r == 0)
                r = is_in_pids_of_root(process);
        if (r == 0)
                r = is_in_mounts_of_root(process);
        return r < 0 ? r : r > 0 ? PEER_IN_CONTAINER : PEER_IN_USER_NAMESPACE;
}

/* Return an enum peer_home, or -errno. */
static int home_of(const char *process)
{
        int r = is_shared(process, "ns/user");

        if (r == 0)
                return home_of_mapped(process);
        if (r > 0)
                r = is_at_home(process);
        return r < 0 ? r : r > 0 ? PEER_AT_HOME : PEER_IN_CONTAINER;
}

int peer_home_of(int socket, enum peer_home *ret)
{
        struct peer_process peer;
        char process[16];
        bool lives;
        int r = peer_process_open(socket, &peer);

        *ret = PEER_HOME_UNKNOWN;
        if (r == -EMFILE || r == -ENFILE || r == -ENOMEM)
                return r;
        if (r < 0)
                return 0;
        snprintf(process, sizeof(process), "%d", (int)peer.pid);
        r = home_of(process);
        lives = peer_process_lives(&peer); /* so all of that was about this process */
        peer_process_close(&peer);
        if (r >= 0 && lives)
                *ret = (enum peer_home)r;
        return r == -ENOMEM ? r : 0;
}
