/* SPDX-License-Identifier: MIT */
/* What the descriptors of a worker are good for, beside its disk. */
#include "tests/kernel/hostile/hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* With CAP_SYS_ADMIN at its opening, the page map shows where in the machine's memory a page lies. */
static int page_frames(const struct victims *victims)
{
        static char page[4096] __attribute__((aligned(4096)));
        off_t at = (off_t)((uintptr_t)page / 4096 * sizeof(uint64_t));

        (void)victims;
        page[0] = 1;
        for (int fd = 0; fd < HOSTILE_FDS; fd++) {
                uint64_t entry = 0;

                if (pread(fd, &entry, sizeof(entry), at) == sizeof(entry) && entry >> 62 != 0
                        && (entry & ((UINT64_C(1) << 55) - 1)) != 0)
                        return 0;
        }
        return -EPERM;
}

/* The journal takes datagrams. */
static int journal(const struct victims *victims)
{
        (void)victims;
        for (int fd = 3; fd < HOSTILE_FDS; fd++) {
                socklen_t size = sizeof(int);
                int type = 0;

                if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_DGRAM)
                        return 0;
        }
        return -ENOENT;
}

static int control_of_a_file(const struct victims *victims)
{
        int bytes;

        (void)victims;
        for (int fd = 3; fd < HOSTILE_FDS; fd++) {
                int r = outcome(ioctl(fd, FIONREAD, &bytes));

                if (r != -EBADF && r != -ENOTTY && r != -EINVAL && r != -EOPNOTSUPP)
                        return r;
        }
        return 0; /* asked, and answered */
}

/* A signal when something can be read: to whomever. */
static int owner_of_a_file(const struct victims *victims)
{
        return outcome(fcntl(3, F_SETOWN, victims->supervisor));
}

/* Of those that are long enough: the backing file, and its region if it had it still. */
static int on_files(int (*act)(int fd, off_t size))
{
        for (int fd = 3; fd < HOSTILE_FDS; fd++) {
                off_t size = lseek(fd, 0, SEEK_END);

                if (size > 0)
                        return outcome(act(fd, size));
        }
        return -ENOENT;
}

static int cut_off(int fd, off_t size)
{
        return ftruncate(fd, size);
}

static int truncate_files(const struct victims *victims)
{
        (void)victims;
        return on_files(cut_off);
}

static int open_to_all(int fd, off_t size)
{
        (void)size;
        return fchmod(fd, 0644);
}

static int mode_of_files(const struct victims *victims)
{
        (void)victims;
        return on_files(open_to_all);
}

const struct named_attack descriptor_attacks[] = {
        {"where pages lie in memory", page_frames},
        {"a record of the journal", journal},
        {"ioctl", control_of_a_file},
        {"a signal by way of a descriptor", owner_of_a_file},
        {"truncate the backing file", truncate_files},
        {"the mode of the backing file", mode_of_files},
        {},
};
