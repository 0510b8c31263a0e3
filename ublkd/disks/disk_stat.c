/* SPDX-License-Identifier: MIT */
/* Reads the counters of a disk from sysfs. */
#include "ublkd/disks/disk_stat.h"

#include "ublkd/base/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

/* The numbers of the file, in their order. */
enum {
        STAT_READS = 0,
        STAT_WRITES = 4,
        STAT_IN_FLIGHT = 8,
        STAT_DISCARDS = 11,
        STAT_FLUSHES = 15,
        STAT_NUMBERS = 17,
};

static int parse(const char *text, uint64_t numbers[STAT_NUMBERS])
{
        for (unsigned i = 0; i < STAT_NUMBERS; i++) {
                char *end;

                numbers[i] = strtoull(text, &end, 10);
                if (end == text)
                        return -EBADMSG;
                text = end;
        }
        return 0;
}

bool disk_stat_is_kept(const char *sys, int number)
{
        char path[256];
        uint64_t on;

        return snprintf(path, sizeof(path), "%s/block/ublkb%d/queue/iostats", sys, number) < (int)sizeof(path)
               && read_number_at(AT_FDCWD, path, &on) >= 0 && on > 0;
}

int disk_stat_read(const char *sys, int number, struct disk_stat *ret)
{
        uint64_t numbers[STAT_NUMBERS];
        char path[256], text[512];
        ssize_t n;
        int r;

        if (snprintf(path, sizeof(path), "%s/block/ublkb%d/stat", sys, number) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        n = read_line_at(AT_FDCWD, path, text, sizeof(text));
        if (n < 0)
                return (int)n;
        r = parse(text, numbers);
        if (r < 0)
                return r;
        *ret = (struct disk_stat){
                .ended = numbers[STAT_READS] + numbers[STAT_WRITES] + numbers[STAT_DISCARDS]
                         + numbers[STAT_FLUSHES],
                .in_flight = numbers[STAT_IN_FLIGHT],
        };
        return 0;
}
