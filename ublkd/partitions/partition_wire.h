/* SPDX-License-Identifier: MIT */
/* What the processes that look at partitions write to the supervisor: private to this room.
 *
 * Of a table: a header, written while the process has its privileges and has read nothing; then, from the confined
 * reader, entries (struct partition) and an end. So the header can be trusted, and the rest cannot. */
#pragma once

#include "ublkd/partitions/partition.h"

enum {
        PARTITION_ANSWER_FD = 3, /* of the reader: where it writes */
        PARTITION_DISK_FD = 4,   /* of the reader: the disk, open for reading */
        PARTITION_END_MAGIC = 0x75706e64,
};

/* The option that makes this program the reader. */
#define PARTITION_READER_NAME "partition-reader"
#define PARTITION_READER_OPTION "--" PARTITION_READER_NAME

struct partition_header {
        int32_t error; /* -errno: the disk could not be opened, and nothing follows */
        uint32_t block_sectors;
        uint64_t sectors;
        uint64_t disk_sequence; /* BLKGETDISKSEQ: no two disks of one boot have the same; 0: unknown */
        int64_t shown;          /* how many partitions the kernel showed; -errno: unknown */
};

struct partition_end {
        uint32_t magic;
        int32_t result; /* of partition_table_read(): how many entries came, or -errno */
};

/* What the process that adds and removes partitions writes. */
struct partition_change {
        int32_t error;    /* -errno: the rest is unknown */
        uint32_t changed; /* steps that were done */
        uint32_t refused; /* steps that were not */
        uint32_t number;  /* the partition of the first one that was not */
        int32_t refusal;  /* its -errno */
};
