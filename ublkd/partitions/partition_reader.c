/* SPDX-License-Identifier: MIT */
/* The program of the process that reads a partition table. */
#include "ublkd/partitions/partition_reader.h"
#include "ublkd/partitions/partition_table.h"
#include "ublkd/partitions/partition_wire.h"
#include "ublkd/partitions/reader_walls.h"

#include "ublkd/base/cleanup.h"

#include <stdbool.h>
#include <sys/prctl.h>

static bool write_all(int fd, const void *data, size_t size)
{
        const char *at = data;

        while (size > 0) {
                ssize_t n = write(fd, at, size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return false;
                at += n;
                size -= (size_t)n;
        }
        return true;
}

int partition_reader_main(int answer, int disk)
{
        static struct partition entries[PARTITION_ENTRIES_MAX];
        struct partition_end end = {.magic = PARTITION_END_MAGIC};
        size_t size;

        (void)prctl(PR_SET_NAME, "ublkd-partition");
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                close_fd(fd); /* nothing that the table can cause is printed */
        end.result = reader_walls_raise();
        if (end.result >= 0)
                end.result = partition_table_read(disk, 0, entries);
        size = end.result > 0 ? (size_t)end.result * sizeof(entries[0]) : 0;
        return write_all(answer, entries, size) && write_all(answer, &end, sizeof(end)) ? EXIT_SUCCESS
                                                                                        : EXIT_FAILURE;
}
