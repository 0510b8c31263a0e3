/* SPDX-License-Identifier: MIT */
/* The partitions that the kernel shows of a disk: reads, adds, grows and removes them. All of it can hang: the caller
 * is a process of its own. */
#pragma once

#include "ublkd/partitions/partition_steps.h"
#include "ublkd/partitions/partition_wire.h"

/* How to reach the disk; tests replace it. */
struct disk_partitions_roots {
        const char *sys; /* NULL: "/sys" */
        const char *dev; /* where nodes are watched; NULL: "/dev" */
        /* Open /dev/ublkbN for reading: a descriptor or -errno. NULL: open its node. */
        int (*open)(int number);
        /* Carry out a step on an open disk: 0 or -errno. NULL: BLKPG. */
        int (*change)(int disk, const struct partition_step *step);
};

/* Open /dev/ublkbN for reading, and read what identifies it. Return a descriptor; -ESTALE: the node is of another
 * disk; other -errno. */
int disk_partitions_open(const struct disk_partitions_roots *roots, int number, struct partition_header *ret);

/* Read the partitions of /dev/ublkbN that the kernel shows. Return 0 or -errno. */
int disk_partitions_read(const struct disk_partitions_roots *roots, int number, struct partition_list *ret);

/* Make the kernel show the partitions in `wanted`, and keep what it shows under a number in `leave`. header: of the
 * disk that the table was read from, or NULL: of whatever disk has the number now. Write what came of it to `ret`; its
 * `error` is -ESTALE if this is another disk, or one of another size. */
void disk_partitions_change(const struct disk_partitions_roots *roots, int number,
        const struct partition_header *header, const struct partition_list *wanted,
        const bool leave[static PARTITION_NUMBER_MAX + 1], struct partition_change *ret);
