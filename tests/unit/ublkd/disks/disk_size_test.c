/* SPDX-License-Identifier: MIT */
/* disk_size: the size of a disk, from files as the kernel writes them. */
#include "ublkd/disks/disk_size.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <stdlib.h>

static char sys[] = "/tmp/disk-size-XXXXXX";

static void put(const char *attribute, const char *text)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/block/ublkb7/queue", sys);
        CHECK_INT(make_dirs(path, 0700), 0);
        snprintf(path, sizeof(path), "%s/block/ublkb7/%s", sys, attribute);
        CHECK_INT(replace_text_at(AT_FDCWD, path, 0600, text), 0);
}

int main(void)
{
        uint64_t size = 1;
        uint32_t block_size = 1;
        char command[64], longer[300];

        if (!CHECK(mkdtemp(sys)))
                return check_report();
        CHECK_INT(disk_size_read(sys, 7, &size, &block_size), -ENOENT);
        put("size", "16384\n");
        CHECK_INT(disk_size_read(sys, 7, &size, &block_size), -ENOENT);
        CHECK_INT(size, 1);
        CHECK_INT(block_size, 1);
        put("queue/logical_block_size", "4096\n");
        CHECK_INT(disk_size_read(sys, 7, &size, &block_size), 0);
        CHECK_INT(size, 8 << 20); /* in sectors of 512 bytes, also where blocks are larger */
        CHECK_INT(block_size, 4096);
        put("size", "36028797018963967\n");
        CHECK_INT(disk_size_read(sys, 7, &size, &block_size), 0);
        CHECK(size == UINT64_MAX - 511);
        CHECK_INT(disk_size_read(sys, 8, &size, &block_size), -ENOENT);
        memset(longer, 'x', sizeof(longer) - 1);
        longer[sizeof(longer) - 1] = '\0';
        CHECK_INT(disk_size_read(longer, 7, &size, &block_size), -ENAMETOOLONG);
        snprintf(command, sizeof(command), "rm -r %s", sys);
        CHECK_INT(system(command), 0);
        return check_report();
}
