/* SPDX-License-Identifier: MIT */
/* Reads the size of a disk from sysfs. */
#include "ublkd/disks/disk_size.h"

#include "ublkd/base/file_io.h"

#include <fcntl.h>

enum { SECTOR_SIZE = 512 }; /* of /sys, whatever the block size */

static int read_number(const char *sys, int number, const char *attribute, uint64_t *ret)
{
        char path[256];

        if (snprintf(path, sizeof(path), "%s/block/ublkb%d/%s", sys, number, attribute) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        return read_number_at(AT_FDCWD, path, ret);
}

int disk_size_read(const char *sys, int number, uint64_t *ret_size, uint32_t *ret_logical_block_size)
{
        uint64_t sectors = 0, block_size = 0;
        int r = read_number(sys, number, "size", &sectors);

        if (r >= 0 && ret_logical_block_size)
                r = read_number(sys, number, "queue/logical_block_size", &block_size);
        if (r < 0)
                return r;
        *ret_size = sectors * SECTOR_SIZE;
        if (ret_logical_block_size)
                *ret_logical_block_size = (uint32_t)block_size;
        return 0;
}
