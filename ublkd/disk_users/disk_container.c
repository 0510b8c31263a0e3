/* SPDX-License-Identifier: MIT */
/* Whose container a process is in, and who may know of it. Each has a mount namespace of its own. That of an ordinary user
 * has a user namespace, which the kernel has made for that user. One of root may share that of the host, and then has a
 * namespace of process ids of its own. */
#include "ublkd/disk_users/disk_look.h"

#include "ublkd/base/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

/* Return 1: the process shares that namespace with this one; 0: it does not; or -errno. */
static int shares_namespace(const struct look *look, const struct process *process, const char *name)
{
        char path[PATH_MAX], own[32], its[32];
        ssize_t n;

        snprintf(path, sizeof(path), "%s/self/%s", look->roots->proc, name);
        n = look_read_link(AT_FDCWD, path, own, sizeof(own));
        if (n >= 0)
                n = look_read_link(process->directory, name, its, sizeof(its));
        return n < 0 ? (int)n : strcmp(own, its) == 0;
}

/* Users make namespaces within namespaces: the outermost below that of this process counts. */
static bool read_owner(const struct process *process, uid_t *ret)
{
        _cleanup_close_ int fd = openat(process->directory, "ns/user", O_RDONLY | O_CLOEXEC);

        return fd >= 0 && namespace_find_owner(fd, ret) > 0;
}

bool disk_container_owner(const struct look *look, const struct process *process, uid_t *ret)
{
        int shared = shares_namespace(look, process, "ns/mnt") != 0
                             ? -EXDEV
                             : shares_namespace(look, process, "ns/user");

        if (shared == 0)
                return read_owner(process, ret);
        if (shared < 0 || shares_namespace(look, process, "ns/pid") != 0)
                return false;
        *ret = 0;
        return true;
}

int disk_container_add_inner(struct disk_users *disk, uid_t uid, uid_t owner, const char *use)
{
        return look_add_user(disk, uid == 0 || owner == 0 ? uid : owner,
                "%s in a container or sandbox of user %u", use, (unsigned)owner);
}

int disk_container_add_user(const struct look *look, struct disk_users *disk, const struct process *process,
        const char *format, ...)
{
        uid_t uid = look_uid_of(process->directory), owner;
        _cleanup_free_ char *use = NULL;
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vasprintf(&use, format, arguments);
        va_end(arguments);
        if (n < 0) {
                use = NULL;
                return -ENOMEM;
        }
        return disk_container_owner(look, process, &owner) ? disk_container_add_inner(disk, uid, owner, use)
                                                           : look_add_user(disk, uid, "%s", use);
}
