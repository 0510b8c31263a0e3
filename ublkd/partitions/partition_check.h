/* SPDX-License-Identifier: MIT */
/* PURE: which entries of a partition table may be shown. A guest or the maker of an image wrote them, so each number
 * is checked before a privileged process uses it. */
#pragma once

#include "ublkd/partitions/partition.h"

#include <stdbool.h>

/* What is wrong with an entry. */
enum partition_fault {
        PARTITION_GOOD,
        PARTITION_BAD_NUMBER, /* 0, or above PARTITION_NUMBER_MAX */
        PARTITION_TWICE,      /* another entry has this number */
        PARTITION_EMPTY,
        PARTITION_BEYOND_END, /* it ends, or begins, beyond the end of the disk */
        PARTITION_UNALIGNED,  /* it begins or ends inside a block of the disk */
        PARTITION_OVERLAPS,   /* an earlier entry has some of its bytes */
        _PARTITION_FAULT_MAX
};

/* The disk that the table is of. */
struct partition_disk {
        uint64_t sectors;       /* its size */
        uint32_t block_sectors; /* in one logical block; not 0 */
};

struct partition_verdict {
        struct partition_list good;
        bool leave[PARTITION_NUMBER_MAX
                   + 1];            /* numbers of the other entries: what is shown under them stays */
        enum partition_fault fault; /* of the first entry with one */
        uint32_t number;            /* of that entry */
        size_t faults;              /* how many entries have one */
};

/* Check `count` entries. The result depends on them alone. */
void partition_check(const struct partition *entries, size_t count, const struct partition_disk *disk,
        struct partition_verdict *ret);

/* Return what is wrong as a phrase that follows "the partition". */
const char *partition_fault_to_string(enum partition_fault fault);
