/* SPDX-License-Identifier: MIT */
/* Which names of block devices may stand for another disk after the next boot. */
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/kernel_name.h"

int main(void)
{
        static const char *const changing[] = {"/dev/sda", "/dev/sdb1", "/dev/sdaa12", "/dev/sdap1",
                "/dev/vda", "/dev/vdb3", "/dev/xvda1", "/dev/hda", "/dev/dm-0", "/dev/dm-17", "/dev/loop7",
                "/dev/loop7p1", "/dev/nvme0n1", "/dev/nvme10n2p3", "/dev/nvme0c1n1", "/dev/mmcblk0",
                "/dev/mmcblk0p2", "/dev/mmcblk0boot0", "/dev/md0", "/dev/md127p1", "/dev/md_d0", "/dev/nbd15",
                "/dev/nbd0p1", "/dev/zd16", "/dev/zd0p9", "/dev/sr0", "/dev/rbd0", "/dev/pmem0",
                "/dev/pmem0.1s", "/dev/block/8:16", "/dev/disk/by-diskseq/12",
                "/dev/disk/by-diskseq/12-part1"};
        static const char *const staying[] = {"/dev/ublkb0", "/dev/ublkb0p1", "/dev/ublk/by-name/data",
                "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4", "/dev/disk/by-partuuid/0c5a-01",
                "/dev/mapper/vg-data", "/dev/vg/data", "/dev/md/home", "/dev/sd", "/dev/sda1x", "/dev/dm-",
                "/dev/dm-x", "/dev/nvme0", "/dev/nvme0n", "/dev/loop", "/dev/loop-control", "/dev/loop0p",
                "/dev/loop01x", "/dev/sda/x", "/dev/drbd0", "/srv/sda", "/srv/dev/sda", "/dev", "/dev/",
                "/devsda", "", "sda", "/dev/block/8:", "/dev/vda-data", "/dev/disk/by-id/nvme0n1"};

        for (size_t i = 0; i < ARRAY_SIZE(changing); i++)
                if (!CHECK(kernel_name_may_change(changing[i])))
                        fprintf(stderr, "%s may change\n", changing[i]);
        for (size_t i = 0; i < ARRAY_SIZE(staying); i++)
                if (!CHECK(!kernel_name_may_change(staying[i])))
                        fprintf(stderr, "%s stays\n", staying[i]);
        return check_report();
}
