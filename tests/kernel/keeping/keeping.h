/* SPDX-License-Identifier: MIT */
/* A target that has no store: its data lies in kept memory. See keeping.c. */
#pragma once

#include <stdint.h>

enum {
        KEEPING_BLOCK = 512,
        KEEPING_BLOCKS = 64, /* with data; the block behind them is a report, and the disk ends with it */
        KEEPING_QUEUE_BYTES = 64 * 1024,
};

/* What a read of the last block begins with. tests/kernel/test_kept_memory.py has the same. */
struct keeping_report {
        uint64_t workers; /* that have served the disk, this one included: in the memory of the disk */
        uint32_t disk_was_fresh, queue_was_fresh; /* any queue */
        uint32_t records, rejected;               /* of all queues */
        uint32_t queues_with_records;
};
