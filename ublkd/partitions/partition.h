/* SPDX-License-Identifier: MIT */
/* A partition as a number and a range, and a list of them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
        PARTITION_SECTOR = 512, /* bytes; the unit of all ranges here, whatever the block size of the disk */
        PARTITION_NUMBER_MAX = 255, /* the kernel takes no higher one (DISK_MAX_PARTS) */
};

struct partition {
        uint32_t number;      /* M of /dev/ublkbNpM */
        uint64_t start, size; /* sectors */
};

struct partition_list {
        size_t count;
        struct partition items[PARTITION_NUMBER_MAX];
};
