/* SPDX-License-Identifier: MIT */
/* disk_whole: a tree of links and files as sysfs has it. */
#include "ublkd/disks/disk_whole.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

static char sys[] = "/tmp/disk-whole-XXXXXX";

static void in_tree(const char *command)
{
        char text[512];

        snprintf(text, sizeof(text), "cd %s && %s", sys, command);
        CHECK_INT(system(text), 0);
}

int main(void)
{
        dev_t disk = 0;

        CHECK(mkdtemp(sys));
        in_tree("mkdir -p dev/block devices/sda/sda1 && echo 8:0 >devices/sda/dev && echo 8:1 "
                ">devices/sda/sda1/dev"
                " && echo 1 >devices/sda/sda1/partition && ln -s ../../devices/sda dev/block/8:0"
                " && ln -s ../../devices/sda/sda1 dev/block/8:1");
        CHECK_INT(disk_whole(sys, makedev(8, 1), &disk), 0);
        CHECK_INT(disk, makedev(8, 0));
        disk = 0;
        CHECK_INT(disk_whole(sys, makedev(8, 0), &disk), 0);
        CHECK_INT(disk, makedev(8, 0));
        CHECK_INT(disk_whole(sys, makedev(8, 2), &disk), -ENOENT);
        in_tree("rm devices/sda/dev");
        CHECK_INT(disk_whole(sys, makedev(8, 1), &disk), -ENOENT);
        CHECK_INT(disk, makedev(8, 0));
        in_tree("rm -r dev devices");
        in_tree("rmdir $PWD");
        return check_report();
}
