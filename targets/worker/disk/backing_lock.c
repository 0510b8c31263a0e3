/* SPDX-License-Identifier: MIT */
/* The lock on the bytes of a file that a disk lies in. */
#include "targets/worker/disk/backing_lock.h"
#include "targets/worker/disk/lock_holder.h"
#include "ublkd/base/fd_path.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* QEMU's are from 100 and from 200 on, a byte for each of its permissions. No disk is as small as that. */
enum { QEMU_BYTES_END = 300 };

/* The kernel counts in off_t. */
static off_t clamp(uint64_t value)
{
        return value > INT64_MAX ? INT64_MAX : (off_t)value;
}

static struct flock flock_of(const struct backing_range *range)
{
        uint64_t start = range->start;

        if (!range->writes && start < QEMU_BYTES_END)
                start = QEMU_BYTES_END;
        return (struct flock){
                .l_type = range->writes ? F_WRLCK : F_RDLCK,
                .l_whence = SEEK_SET,
                .l_start = clamp(start),
                .l_len = clamp(range->end) - clamp(start),
        };
}

int backing_lock(const struct backing_range *range)
{
        struct flock lock = flock_of(range);

        if (fcntl(range->fd, F_OFD_SETLK, &lock) == 0)
                return 0;
        return errno == EACCES ? -EAGAIN : -errno; /* POSIX allows both */
}

bool backing_lock_beside_readers(const struct backing_range *range)
{
        struct flock lock = flock_of(range);

        lock.l_type = F_RDLCK; /* conflicts with writers alone */
        return fcntl(range->fd, F_OFD_SETLK, &lock) == 0;
}

static bool find_holder(const struct backing_range *range, struct lock_holder *ret)
{
        struct flock lock = flock_of(range), found = lock;
        struct stat stat;

        if (fcntl(range->fd, F_OFD_GETLK, &found) == 0 && found.l_type != F_UNLCK && found.l_pid > 0)
                return lock_holder_name("/proc", found.l_pid, ret);
        return fstat(range->fd, &stat) == 0 && lock_holder_find("/proc", stat.st_ino, &lock, ret);
}

static void read_path(int fd, char path[static PATH_MAX])
{
        ssize_t n = readlink(fd_path(fd).text, path, PATH_MAX - 1);

        if (n < 0) /* in the sandbox there is no /proc */
                n = snprintf(path, PATH_MAX, "The backing store");
        path[n] = '\0';
}

int backing_lock_explain(const struct backing_range *range, const char *pointer,
        struct problem_list *problems, pid_t *ret_holder)
{
        static const char
                danger[] = "two that write to one store would destroy its data",
                advice[] = "End that one first, use another store or range of it, or make both read-only.";
        struct lock_holder holder;
        char path[PATH_MAX];
        bool found = find_holder(range, &holder);

        *ret_holder = found ? holder.pid : 0;
        read_path(range->fd, path);
        if (found && holder.kind != HOLDER_OTHER) /* to end it would take a disk from its users */
                return problem_add(problems, EBUSY, pointer, "BackingInUse",
                        "%s is in use by process %d (%s), for a disk of ublkd; %s. Use that disk, or another "
                        "store or range. If it belongs to no device, 'ublkctl host' shows how to take it "
                        "over.",
                        path, (int)holder.pid, holder.name, danger);
        if (found)
                return problem_add(problems, EBUSY, pointer, "BackingInUse",
                        "%s is in use by process %d (%s); %s. %s", path, (int)holder.pid, holder.name, danger,
                        advice);
        return problem_add(problems, EBUSY, pointer, "BackingInUse",
                "%s is locked by a process that /proc does not show here: in another container, on another "
                "machine, or a server that has ended and still has requests in flight; %s. %s",
                path, danger, advice);
}
