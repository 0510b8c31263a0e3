/* SPDX-License-Identifier: MIT */
/* The rights of a process of ublkd that enters the namespaces of others. */
#include "ublkd/nodes/process_rights.h"

#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <linux/nsfs.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int rights_set(uint64_t permitted, uint64_t effective)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        const struct __user_cap_data_struct data[] = {
                {.permitted = (uint32_t)permitted,         .effective = (uint32_t)effective        },
                {.permitted = (uint32_t)(permitted >> 32), .effective = (uint32_t)(effective >> 32)},
        };

        return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int rights_hide(void)
{
        return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0
                       ? -errno
                       : 0;
}

int namespace_is_ours(int namespace, const char *name)
{
        struct stat theirs, ours;
        char path[32];

        snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
        if (fstat(namespace, &theirs) < 0 || stat(path, &ours) < 0)
                return -errno;
        return theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev;
}

int namespace_find_owner(int users, uid_t *ret)
{
        _cleanup_close_ int outer = -1;
        int r = namespace_is_ours(users, "user"), fd = users;

        if (r != 0)
                return r < 0 ? r : 0;
        while (r == 0) {
                int parent = ioctl(fd, NS_GET_PARENT);

                if (parent < 0)
                        return errno == EPERM ? 0 : -errno;
                r = namespace_is_ours(parent, "user");
                if (r != 0) {
                        close_fd(parent);
                        break;
                }
                close_fd(outer);
                fd = outer = parent;
        }
        return r < 0 ? r : ioctl(fd, NS_GET_OWNER_UID, ret) < 0 ? -errno : 1;
}
