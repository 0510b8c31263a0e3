/* SPDX-License-Identifier: MIT */
/* Lends a ring the rights of an ordinary user. */
#include "ublkd/driver/ublk_ctl_user.h"

#include "ublkd/base/cleanup.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KEEP = -1 };

static int set_effective(bool all)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

        if (syscall(SYS_capget, &header, data) < 0)
                return -errno;
        for (size_t i = 0; i < ARRAY_SIZE(data); i++)
                data[i].effective = all ? data[i].permitted : 0;
        return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

/* The driver looks at the real ids. The saved uid stays 0, so that what this process may do comes back. */
static int become(uid_t uid, gid_t gid)
{
        if (setresgid(gid, gid, (gid_t)KEEP) < 0 || setresuid(uid, uid, (uid_t)KEEP) < 0)
                return -errno;
        return set_effective(false); /* of root the kernel takes none */
}

static int come_back(void)
{
        int r = setresuid(0, 0, (uid_t)KEEP) < 0 ? -errno : 0;

        if (r >= 0)
                r = set_effective(true);
        return r >= 0 && setresgid(0, 0, (gid_t)KEEP) < 0 ? -errno : r;
}

int ctl_user_lend(struct io_uring *ring, uid_t uid, gid_t gid)
{
        int r = become(uid, gid);

        if (r >= 0)
                r = io_uring_register_personality(ring);
        if (come_back() < 0)
                _exit(EXIT_FAILURE);
        return r;
}
