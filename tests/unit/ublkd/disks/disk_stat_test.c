/* SPDX-License-Identifier: MIT */
/* disk_stat: the counters of a disk, from a file as the kernel writes it. */
#include "ublkd/disks/disk_stat.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static char sys[] = "/tmp/disk-stat-XXXXXX";

static void put(const char *text)
{
        _cleanup_fclose_ FILE *file = NULL;
        char path[96];

        snprintf(path, sizeof(path), "%s/block", sys);
        (void)mkdir(path, 0700);
        snprintf(path, sizeof(path), "%s/block/ublkb7", sys);
        (void)mkdir(path, 0700);
        snprintf(path, sizeof(path), "%s/block/ublkb7/stat", sys);
        file = fopen(path, "we");
        CHECK(file && fputs(text, file) >= 0);
}

int main(void)
{
        struct disk_stat stat = {};
        char command[96];

        CHECK(mkdtemp(sys));
        CHECK_INT(disk_stat_read(sys, 7, &stat), -ENOENT);
        put("     101       12     8080       33      200        9     4096       44       5       66       "
            "77      30 "
            "       1        2        3      4        5\n");
        CHECK_INT(disk_stat_read(sys, 7, &stat), 0);
        CHECK_INT(stat.ended, 101 + 200 + 30 + 4);
        CHECK_INT(stat.in_flight, 5);
        put("1 2 3 4 5 6 7 8 9 10 11\n"); /* before Linux 4.18 */
        CHECK_INT(disk_stat_read(sys, 7, &stat), -EBADMSG);
        put("");
        CHECK_INT(disk_stat_read(sys, 7, &stat), -EBADMSG);
        snprintf(command, sizeof(command), "rm -r %s", sys);
        CHECK_INT(system(command), 0);
        return check_report();
}
