/* SPDX-License-Identifier: MIT */
/* What a loop device of the kernel lies in. */
#include "targets/loop/loop_node.h"

#include "targets/loop/block_device.h"
#include "targets/loop/sys_block.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <linux/major.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

bool is_loop_device(dev_t number)
{
        dev_t disk;
        uint64_t start;

        block_device_place(number, &disk, &start);
        return major(disk) == LOOP_MAJOR;
}

/* As the kernel writes it into 64 bits: huge_encode_dev(). */
static dev_t decode_device(uint64_t number)
{
        return makedev(
                (unsigned)(number >> 8 & 0xfff), (unsigned)((number & 0xff) | (number >> 12 & 0xfff00)));
}

int loop_node_read(dev_t number, struct loop_backing *ret)
{
        struct loop_info64 info;
        _cleanup_close_ int fd = -1;
        int r = sys_block_open_node(number, O_RDONLY, &fd);

        if (r < 0)
                return r;
        if (ioctl(fd, LOOP_GET_STATUS64, &info) < 0)
                return -errno;
        *ret = (struct loop_backing){
                .disk = decode_device(info.lo_rdevice),
                .device = decode_device(info.lo_device),
                .inode = info.lo_inode,
                .start = info.lo_offset,
                .size_max = info.lo_sizelimit,
                .read_only = (info.lo_flags & LO_FLAGS_READ_ONLY) != 0,
        };
        return 0;
}

int loop_node_open_file(dev_t number, const struct loop_backing *backing, int *ret)
{
        char path[PATH_MAX];
        _cleanup_close_ int fd = -1;
        struct stat stat_buffer;

        if (!sys_block_attribute(number, "loop/backing_file", path, sizeof(path)))
                return -ENOENT;
        path[strcspn(path, "\n")] = '\0';
        fd = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 || fstat(fd, &stat_buffer) < 0)
                return -errno;
        if (stat_buffer.st_dev != backing->device || stat_buffer.st_ino != backing->inode)
                return -ENOENT;
        *ret = TAKE_FD(fd);
        return 0;
}
