/* SPDX-License-Identifier: MIT */
/* A copy of a mount for a container.
 *
 * The kernel lets root of a container remount what is mounted there, without nosuid, nodev and the rest: the copy gets into its
 * mount namespace by a move, and a move locks nothing. It locks the options of mounts that a new mount namespace of a new user
 * namespace copies, and keeps that in copies of those. So a child makes such a namespace, and takes the copy from there. */
#include "ublkd/nodes/mount_clone.h"
#include "ublkd/nodes/process_rights.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/fd_result.h"
#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

int mount_clone_source(const char *path, const char *number)
{
        _cleanup_close_ int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct statx info;
        dev_t disk;
        int r;

        if (fd < 0)
                return errno == ENOENT ? -ENXIO : -errno;
        if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &info) < 0)
                return -errno;
        if (!(info.stx_attributes & STATX_ATTR_MOUNT_ROOT))
                return -ENXIO;
        r = read_device_at(AT_FDCWD, number, &disk);
        if (r < 0)
                return r;
        return makedev(info.stx_dev_major, info.stx_dev_minor) == disk ? TAKE_FD(fd) : -ESTALE;
}

/* Its options are locked from here on. The mounts of the host stay as they are: this process has its own. */
static int lock_options(int tree, const char *path)
{
        int fd;

        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
                || move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0
                || unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                return -errno;
        fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
        return fd < 0 ? -errno : fd;
}

static int clone_locked(int tree, const char *path)
{
        _cleanup_close_ int ours = -1, theirs = -1;
        int link[2], result;
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) < 0)
                return -errno;
        ours = link[0];
        theirs = link[1];
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                _exit(rights_hide() >= 0 && fd_result_send(theirs, lock_options(tree, path)) ? EXIT_SUCCESS
                                                                                             : EXIT_FAILURE);
        theirs = close_fd(theirs);
        result = fd_result_receive(ours, 0);
        (void)waitpid(pid, NULL, 0);
        return result;
}

int mount_clone(int source, const char *path, int users, const struct mount_options *options)
{
        struct mount_attr attributes = {
                .attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV
                            | (options->read_only ? MOUNT_ATTR_RDONLY : 0)
                            | (options->no_exec ? MOUNT_ATTR_NOEXEC : 0),
                .propagation = MS_PRIVATE,
                .userns_fd = (uint64_t)users,
        };
        _cleanup_close_ int tree = open_tree(source, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

        if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) < 0)
                return -errno;
        return clone_locked(tree, path);
}
