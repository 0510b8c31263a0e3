/* SPDX-License-Identifier: MIT */
/* What the kernel reports of a block device: by ioctl where there is one, else from sysfs. */
#include "targets/loop/block_device.h"

#include "targets/loop/sys_block.h"
#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

/* A limit of the device's queue; a partition shows its disk's. 0 where there is none. */
static uint64_t queue_limit(dev_t number, const char *name)
{
        static const char *const folders[] = {"queue", "../queue"};

        if (major(number) == 0) /* of a file system without one: tmpfs, overlay, btrfs */
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
                char path[128];
                uint64_t limit;

                snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s/%s", major(number), minor(number),
                        folders[i], name);
                if (read_number_at(AT_FDCWD, path, &limit) >= 0)
                        return limit;
        }
        return 0;
}

bool block_device_is_rotational(dev_t number)
{
        return queue_limit(number, "rotational") != 0;
}

/* /sys/dev/block holds links, and a partition's folder is in its disk's. */
void block_device_place(dev_t number, dev_t *ret_disk, uint64_t *ret_start)
{
        char partition[32], start[32], disk[32];
        unsigned major_number, minor_number;

        *ret_disk = number;
        *ret_start = 0;
        if (!sys_block_attribute(number, "partition", partition, sizeof(partition))
                || !sys_block_attribute(number, "start", start, sizeof(start))
                || !sys_block_attribute(number, "../dev", disk, sizeof(disk))
                || sscanf(disk, "%u:%u", &major_number, &minor_number) != 2)
                return;
        *ret_disk = makedev(major_number, minor_number);
        *ret_start = strtoull(start, NULL, 10) * 512; /* /sys counts in sectors of 512 bytes */
}

static uint32_t clamp(uint64_t value)
{
        return value > UINT32_MAX ? 0 : (uint32_t)value;
}

struct page_limits block_device_page_limits(dev_t number)
{
        uint64_t segments = queue_limit(number, "max_segments");
        struct page_limits limits = {
                .max_segment_size = clamp(queue_limit(number, "max_segment_size")),
                .max_segments = segments > UINT16_MAX ? UINT16_MAX : (uint16_t)segments,
        };

        if (segments > 0) /* there is such a disk: the mask may well be 0 */
                limits.dma_alignment = clamp(queue_limit(number, "dma_alignment") + 1);
        return limits;
}

int block_device_read(int fd, dev_t number, struct block_device *ret)
{
        int logical = 0, read_only = 0;
        unsigned physical = 0;
        uint64_t size;

        if (ioctl(fd, BLKGETSIZE64, &size) < 0 || ioctl(fd, BLKSSZGET, &logical) < 0
                || ioctl(fd, BLKPBSZGET, &physical) < 0 || ioctl(fd, BLKROGET, &read_only) < 0)
                return -errno;
        *ret = (struct block_device){
                .size = size,
                .logical_block_size = (uint32_t)logical,
                .physical_block_size = physical,
                .io_min = clamp(queue_limit(number, "minimum_io_size")),
                .io_opt = clamp(queue_limit(number, "optimal_io_size")),
                .discard_granularity = clamp(queue_limit(number, "discard_granularity")),
                .write_zeroes_max = queue_limit(number, "write_zeroes_max_bytes"),
                .discard_max = queue_limit(number, "discard_max_bytes"),
                .read_only = read_only != 0,
                .rotational = block_device_is_rotational(number),
        };
        return 0;
}
