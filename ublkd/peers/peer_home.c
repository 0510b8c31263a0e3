/* SPDX-License-Identifier: MIT */
/* Whether the process that connected to a Unix socket runs on this host itself, or in a container. */
#include "ublkd/peers/peer_home.h"

#include "ublkd/peers/peer_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

/* Return 1 if the process is of this host, 0 if not; -errno. */
static int is_of_host(const char *process)
{
        int r = is_shared(process, "ns/user");

        if (r > 0)
                r = is_shared(process, "ns/pid");
        if (r <= 0)
                return r;
        r = is_shared(process, "ns/mnt");
        return r != 0 ? r : has_root_of_host(process);
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
        r = is_of_host(process);
        lives = peer_process_lives(&peer); /* so all of that was about this process */
        peer_process_close(&peer);
        if (r >= 0 && lives)
                *ret = r ? PEER_AT_HOME : PEER_IN_CONTAINER;
        return r == -ENOMEM ? r : 0;
}
