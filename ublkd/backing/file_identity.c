/* SPDX-License-Identifier: MIT */
/* The identity of a regular file. */
#include "ublkd/backing/file_identity.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/fd_path.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/types.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

/* include/uapi/linux/fs.h of Linux 6.9; older headers lack it. */
struct fs_uuid {
        __u8 length;
        __u8 bytes[16];
};
#define IOCTL_GET_FS_UUID _IOR(0x15, 0, struct fs_uuid)

/* include/uapi/linux/fcntl.h of Linux 6.5: a handle that can be compared but not opened. */
#ifndef AT_HANDLE_FID
#define AT_HANDLE_FID 0x200
#endif

enum {
        HANDLE_BYTES_MAX =
                80, /* a longer handle has no room in a token; ext4 has 8 bytes, xfs 12, btrfs 40 */
        FS_TOKEN_SIZE = 64,
        NAME_TOKEN_SIZE = 200,
        FUSE_MAGIC = 0x65735546, /* linux/magic.h of newer headers: FUSE_SUPER_MAGIC */
};

/* Opens what `fd` refers to, without a path. */
static int reopen(int fd, int flags)
{
        return open(fd_path(fd).text, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

static void hex(const unsigned char *bytes, size_t count, char *ret)
{
        for (size_t i = 0; i < count; i++)
                sprintf(ret + 2 * i, "%02x", bytes[i]);
        ret[2 * count] = '\0';
}

/* True: `ret` is the UUID of the file system. False: it holds for this boot, the number of its device. */
static bool read_fs(int fd, const struct stat *stat, char ret[static FS_TOKEN_SIZE])
{
        _cleanup_close_ int readable = reopen(fd, O_RDONLY);
        struct fs_uuid uuid = {};

        if (readable >= 0 && ioctl(readable, IOCTL_GET_FS_UUID, &uuid) == 0 && uuid.length > 0
                && uuid.length <= sizeof(uuid.bytes)) {
                hex(uuid.bytes, uuid.length, ret);
                return true;
        }
        snprintf(ret, FS_TOKEN_SIZE, "dev%u.%u", major(stat->st_dev), minor(stat->st_dev));
        return false;
}

/* A file of FUSE has another handle once the kernel has dropped its inode, one of an overlay once it was copied up. */
static bool has_steady_handles(int fd)
{
        struct statfs info;

        return fstatfs(fd, &info) == 0 && info.f_type != FUSE_MAGIC && info.f_type != OVERLAYFS_SUPER_MAGIC;
}

static bool read_handle(int fd, char ret[static NAME_TOKEN_SIZE])
{
        union {
                struct file_handle handle;
                char space[sizeof(struct file_handle) + HANDLE_BYTES_MAX];
        } buffer;
        static const int ways[] = {AT_EMPTY_PATH, AT_EMPTY_PATH | AT_HANDLE_FID};
        int mount, n;

        if (!has_steady_handles(fd))
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
                buffer.handle.handle_bytes = HANDLE_BYTES_MAX;
                if (name_to_handle_at(fd, "", &buffer.handle, &mount, ways[i]) < 0)
                        continue;
                n = snprintf(ret, NAME_TOKEN_SIZE, "%x.", (unsigned)buffer.handle.handle_type);
                hex(buffer.handle.f_handle, buffer.handle.handle_bytes, ret + n);
                return true;
        }
        return false;
}

/* Without a time of birth the number alone: it may be given to another file. */
static void read_inode(int fd, const struct stat *stat, char ret[static NAME_TOKEN_SIZE])
{
        struct statx info = {};

        if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &info) < 0 || !(info.stx_mask & STATX_BTIME))
                info.stx_btime = (struct statx_timestamp){};
        snprintf(ret, NAME_TOKEN_SIZE, "%ju.%" PRId64 ".%09u", (uintmax_t)stat->st_ino,
                (int64_t)info.stx_btime.tv_sec, info.stx_btime.tv_nsec);
}

void file_identify(int fd, const struct stat *stat, struct backing_identity *ret)
{
        char fs[FS_TOKEN_SIZE], name[NAME_TOKEN_SIZE];
        bool lasts = read_fs(fd, stat, fs), handle = read_handle(fd, name);
        int n;

        if (!handle)
                read_inode(fd, stat, name);
        *ret = (struct backing_identity){.basis = handle ? BACKING_FILE_HANDLE : BACKING_FILE_INODE};
        n = snprintf(ret->boot, BACKING_TOKEN_SIZE, "file:%s:%s", fs, name);
        if (n < 0 || n >= BACKING_TOKEN_SIZE)
                ret->boot[0] = '\0'; /* half of a token could be that of another file */
        else if (lasts && handle)
                strcpy(ret->lasting, ret->boot);
}
