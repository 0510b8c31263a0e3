/* SPDX-License-Identifier: MIT */
/* The note has one line: the pid of the process, and the inode number of its pidfd, which the kernel gives to no
 * other process until the next boot. So another process that has the pid by now is never taken for the worker. */
#include "ublkd/workers/worker_mark.h"

#include "ublkd/base/cleanup.h"

#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#ifndef PID_FS_MAGIC /* Linux 6.9; newer than the headers of Debian 12 */
#define PID_FS_MAGIC 0x50494446
#endif

enum { TEXT_SIZE = 64 };

/* Older kernels have one inode for all pidfds. */
static int identity_of(int pidfd, uint64_t *ret)
{
        struct statfs fs;
        struct stat st;

        if (fstatfs(pidfd, &fs) < 0 || fstat(pidfd, &st) < 0)
                return -errno;
        if (fs.f_type != PID_FS_MAGIC)
                return -EOPNOTSUPP;
        *ret = st.st_ino;
        return 0;
}

int worker_mark_write(struct runtime_dir *dir, const char *uid, pid_t pid, int pidfd)
{
        char text[TEXT_SIZE];
        uint64_t identity;
        int r = identity_of(pidfd, &identity);

        if (r < 0)
                return r;
        snprintf(text, sizeof(text), "%d %" PRIu64 "\n", (int)pid, identity);
        return runtime_dir_write(dir, uid, RUNTIME_WORKER, text);
}

static int read_mark(struct runtime_dir *dir, const char *uid, pid_t *ret_pid, uint64_t *ret_identity)
{
        _cleanup_free_ char *text = NULL;
        int r = runtime_dir_read(dir, uid, RUNTIME_WORKER, &text), pid, end = 0;

        if (r < 0)
                return r;
        if (sscanf(text, "%d %" SCNu64 "%n", &pid, ret_identity, &end) != 2 || pid <= 0 || text[end] != '\n')
                return -ENOENT; /* another version has written it */
        *ret_pid = pid;
        return 0;
}

static bool is_alive(int pidfd)
{
        return poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, 0) == 0;
}

int worker_mark_find(struct runtime_dir *dir, const char *uid, pid_t *ret_pid)
{
        _cleanup_close_ int pidfd = -1;
        uint64_t noted, found;
        pid_t pid;
        int r = read_mark(dir, uid, &pid, &noted);

        if (r < 0)
                return r;
        pidfd = pidfd_open(pid, 0);
        if (pidfd < 0)
                return errno == ESRCH || errno == EINVAL ? -ENOENT
                                                         : -errno; /* EINVAL: a thread has the pid */
        r = identity_of(pidfd, &found);
        if (r < 0)
                return r;
        if (found != noted || !is_alive(pidfd))
                return -ENOENT;
        *ret_pid = pid;
        return TAKE_FD(pidfd);
}
