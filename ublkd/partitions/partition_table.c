/* SPDX-License-Identifier: MIT */
/* Reads the partition table of a disk with libblkid. */
#include "ublkd/partitions/partition_table.h"

#include "ublkd/base/cleanup.h"

#include <blkid/blkid.h>

enum {
        /* The kernel shows the first KiB of an extended partition (parse_extended() in block/partitions/msdos.c), so
         * that no program takes it for a place for data. */
        EXTENDED_SECTORS = 2,
        FOUND = 0, /* of blkid_do_safeprobe() */
        NOTHING_FOUND = 1,
};

static void free_probe(blkid_probe *probe)
{
        blkid_free_probe(*probe);
}

static uint64_t size_of(blkid_partition partition, unsigned block_sectors)
{
        uint64_t size = (uint64_t)blkid_partition_get_size(partition);
        uint64_t shown = block_sectors > EXTENDED_SECTORS ? block_sectors : EXTENDED_SECTORS;

        return blkid_partition_is_extended(partition) && size > shown ? shown : size;
}

static int read_entries(blkid_partlist list, unsigned block_sectors, struct partition *ret)
{
        int count = blkid_partlist_numof_partitions(list);

        if (count > PARTITION_ENTRIES_MAX)
                return -E2BIG;
        for (int i = 0; i < count; i++) {
                blkid_partition partition = blkid_partlist_get_partition(list, i);
                int number = partition ? blkid_partition_get_partno(partition) : -1;

                if (!partition)
                        return -EIO;
                ret[i] = (struct partition){
                        .number = number > 0 ? (uint32_t)number : 0,
                        .start = (uint64_t)blkid_partition_get_start(partition),
                        .size = size_of(partition, block_sectors),
                };
        }
        return count < 0 ? -EIO : count;
}

static int set_up(blkid_probe probe, int fd, unsigned block_size)
{
        if (blkid_probe_set_device(probe, fd, 0, 0) != 0)
                return errno ? -errno : -EIO;
        if (block_size && blkid_probe_set_sectorsize(probe, block_size) != 0)
                return -EINVAL;
        if (blkid_probe_enable_superblocks(probe, 0) != 0 || blkid_probe_enable_partitions(probe, 1) != 0)
                return -ENOMEM;
        return 0;
}

int partition_table_read(int fd, unsigned block_size, struct partition ret[static PARTITION_ENTRIES_MAX])
{
        _cleanup_(free_probe) blkid_probe probe = blkid_new_probe();
        blkid_partlist list;
        int r;

        if (!probe)
                return -ENOMEM;
        errno = 0;
        r = set_up(probe, fd, block_size);
        if (r < 0)
                return r;
        r = blkid_do_safeprobe(probe);
        if (r == NOTHING_FOUND)
                return 0;
        if (r != FOUND)
                return -EIO;
        list = blkid_probe_get_partitions(probe);
        return list ? read_entries(list, blkid_probe_get_sectorsize(probe) / PARTITION_SECTOR, ret) : -EIO;
}
