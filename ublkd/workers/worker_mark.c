/* SPDX-License-Identifier: MIT */
/* The note has one line: the pid of the process, the inode number of its pidfd, which the kernel gives to no other
 * process until the next boot, and the id of the boot, because a runtime directory may survive it. So another process
 * that has the pid by now is never taken for the worker. A note without the id of the boot, of an older ublkd, names no
 * process.
 *
 * Before Linux 6.9 there is no such number, and the note has 0. There the control group of the worker says which process
 * it is: a group that is named after the pid, and has the process inside. No process gets there by itself, and the group
 * is removed when its worker is dead. */
#include "ublkd/workers/worker_mark.h"

#include "ublkd/base/cleanup.h"

#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <systemd/sd-id128.h>

#ifndef PID_FS_MAGIC /* Linux 6.9; newer than the headers of Debian 12 */
#define PID_FS_MAGIC 0x50494446
#endif

enum { TEXT_SIZE = 96 };

/* Older kernels have one inode for all pidfds: 0. */
static int identity_of(int pidfd, uint64_t *ret)
{
        struct statfs fs;
        struct stat st;

        if (fstatfs(pidfd, &fs) < 0 || fstat(pidfd, &st) < 0)
                return -errno;
        *ret = fs.f_type == PID_FS_MAGIC ? st.st_ino : 0;
        return 0;
}

static int this_boot(char ret[static SD_ID128_STRING_MAX])
{
        sd_id128_t boot;
        int r = sd_id128_get_boot(&boot);

        if (r < 0)
                return r;
        (void)sd_id128_to_string(boot, ret);
        return 0;
}

static int write_mark(struct runtime_dir *dir, const char *uid, pid_t pid, int pidfd)
{
        char text[TEXT_SIZE], boot[SD_ID128_STRING_MAX];
        uint64_t identity = 0;
        int r = identity_of(pidfd, &identity);

        if (r >= 0)
                r = this_boot(boot);
        if (r < 0)
                return r;
        snprintf(text, sizeof(text), "%d %" PRIu64 " %s\n", (int)pid, identity, boot);
        return runtime_dir_write(dir, uid, RUNTIME_WORKER, text);
}

int worker_mark_write(struct runtime_dir *dir, const char *uid, pid_t pid, int pidfd)
{
        int r = write_mark(dir, uid, pid, pidfd);

        if (r < 0)
                (void)runtime_dir_remove(dir, uid, RUNTIME_WORKER); /* that of another process */
        return r;
}

static int read_mark(struct runtime_dir *dir, const char *uid, pid_t *ret_pid, uint64_t *ret_identity)
{
        _cleanup_free_ char *text = NULL;
        char boot[SD_ID128_STRING_MAX], noted[SD_ID128_STRING_MAX] = "";
        int r = runtime_dir_read(dir, uid, RUNTIME_WORKER, &text), pid, end = 0;

        if (r >= 0)
                r = this_boot(boot);
        if (r < 0)
                return r;
        if (sscanf(text, "%d %" SCNu64 " %32[0-9a-f]%n", &pid, ret_identity, noted, &end) != 3 || pid <= 0
                || text[end] != '\n' || strcmp(noted, boot) != 0)
                return -ENOENT; /* another version has written it, or it is of another boot */
        *ret_pid = pid;
        return 0;
}

int worker_mark_compare(struct runtime_dir *dir, const char *uid, pid_t pid, int pidfd)
{
        uint64_t noted, found;
        pid_t noted_pid;
        int r = read_mark(dir, uid, &noted_pid, &noted);

        if (r >= 0)
                r = identity_of(pidfd, &found);
        return r < 0 ? r : pid == noted_pid && found == noted;
}

static bool is_alive(int pidfd)
{
        return poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, 0) == 0;
}

static bool is_noted(const struct worker_groups *groups, pid_t pid, uint64_t noted, uint64_t found)
{
        return found == noted && (found != 0 || (groups && worker_groups_has(groups, pid)));
}

int worker_mark_find(
        struct runtime_dir *dir, const struct worker_groups *groups, const char *uid, pid_t *ret_pid)
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
        if (!is_noted(groups, pid, noted, found)
                || !is_alive(pidfd)) /* in this order: the pid is still its own */
                return -ENOENT;
        *ret_pid = pid;
        return TAKE_FD(pidfd);
}
