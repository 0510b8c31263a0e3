/* SPDX-License-Identifier: MIT */
/* PURE: what turns the partitions that the kernel shows into those of the table. */
#pragma once

#include "ublkd/partitions/partition.h"

#include <stdbool.h>

enum partition_action {
        PARTITION_DELETE, /* the kernel refuses while the partition is open */
        PARTITION_GROW,   /* only its end moves: harmless while it is open */
        PARTITION_ADD,    /* skipped if the DELETE of the same number was refused */
};

struct partition_step {
        enum partition_action action;
        struct partition partition; /* of DELETE: as it is shown; else: as it is wanted */
};

struct partition_steps {
        size_t count;
        struct partition_step items[2 * PARTITION_NUMBER_MAX];
};

/* Find the steps, in order: first what makes room. What is as wanted is not touched. leave[NUMBER]: so is what
 * is shown under this number. Numbers are 1 to PARTITION_NUMBER_MAX, each once in a list. */
void partition_steps_find(const struct partition_list *present, const struct partition_list *wanted,
        const bool leave[static PARTITION_NUMBER_MAX + 1], struct partition_steps *ret);
