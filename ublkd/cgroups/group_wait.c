/* SPDX-License-Identifier: MIT */
/* Each process is waited for by its pidfd; then the group is read again, because one may have started another. */
#include "ublkd/cgroups/group_wait.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/base/file_io.h"
#include "ublkd/cgroups/group_place.h"
#include "ublkd/cgroups/group_procs.h"

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>

/* Where groups cannot be had for workers, they are in this one, and serve on. */
#define WORKER "ublkd-worker"
#define DELIVERY "ublkd-delivery"
#define RECALL "ublkd-recall"

enum { NAME_SIZE = 64 };

/* Return whether the process may outlive ublkd: a worker, or one that hangs in a file system of a container. */
static bool may_stay(pid_t pid)
{
        char path[NAME_SIZE], name[NAME_SIZE];

        snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
        return read_line_at(AT_FDCWD, path, name, sizeof(name)) >= 0
               && (strcmp(name, WORKER) == 0 || strcmp(name, DELIVERY) == 0 || strcmp(name, RECALL) == 0);
}

/* Return a pidfd, or -1: it has ended. One that is not reaped yet may be shown for a while. */
static int open_living(pid_t pid)
{
        _cleanup_close_ int pidfd = pidfd_open(pid, 0);

        return pidfd >= 0 && poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, 0) == 0 ? TAKE_FD(pidfd)
                                                                                              : -1;
}

/* Return 0 and a pidfd of one that is to be waited for, or -1 if there is none; -errno. */
static int find_process(const char *group, int *ret)
{
        _cleanup_fclose_ FILE *stream = NULL;
        int r = group_procs_open(AT_FDCWD, group, &stream), pidfd = -1;
        long pid;

        if (r < 0)
                return r;
        while (pidfd < 0 && group_procs_next(stream, &pid) > 0)
                if (pid > 0 && pid != getpid() && !may_stay((pid_t)pid))
                        pidfd = open_living((pid_t)pid);
        *ret = pidfd;
        return 0;
}

int group_wait(const struct group_sources *sources, uint64_t patience_usec)
{
        uint64_t deadline = monotonic_now() + patience_usec, now;
        char group[PATH_MAX];
        int r = group_place_find_own(sources, group);

        while (r >= 0) {
                _cleanup_close_ int pidfd = -1;

                r = find_process(group, &pidfd);
                if (r < 0 || pidfd < 0)
                        break;
                now = monotonic_now();
                if (now >= deadline)
                        return 1;
                (void)poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1,
                        (int)((deadline - now) / 1000) + 1);
        }
        return r;
}
