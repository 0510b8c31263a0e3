/* SPDX-License-Identifier: MIT */
/* Reads the partition table of a disk with libblkid: every kind that it knows (GPT, also from its copy at the end of
 * the disk; DOS with logical partitions; BSD, …). The table is foreign data: call it only where nothing can be
 * harmed (reader_walls.h). */
#pragma once

#include "ublkd/partitions/partition.h"

enum { PARTITION_ENTRIES_MAX = 1024 }; /* of one table; more are refused */

/* Read the table of the disk or image `fd`. block_size: the logical block size in bytes, for an image; 0: ask the
 * disk. Write at most PARTITION_ENTRIES_MAX entries to `ret`, unchecked; an extended partition has the few sectors
 * that the kernel gives it. Return how many there are; 0: also where there is no table. -EIO: the disk could not be
 * read, or the table is broken; -E2BIG; other -errno. */
int partition_table_read(int fd, unsigned block_size, struct partition ret[static PARTITION_ENTRIES_MAX]);
