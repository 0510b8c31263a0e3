/* SPDX-License-Identifier: MIT */
/* Whose the namespaces of other processes are. */
#include "ublkd/base/namespace.h"

#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

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
