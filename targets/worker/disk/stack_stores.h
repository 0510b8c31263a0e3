/* SPDX-License-Identifier: MIT */
/* The backing stores of a tree of targets: what each is to be, and what was found. Where the disk lies in the only one as it is, the
 * core gets that one as the store of the disk. */
#pragma once

#include "targets/worker/disk/disk_range.h"
#include "targets/worker/disk/stack.h"

struct stack;

/* line: whether the disk lies in its only store as it is. */

/* Return 0; -EACCES with a problem: the tree has a store that may not be opened; -ENOMEM. */
int stack_stores_check(const struct stack *stack, bool line, struct problem_list *problems);
/* Give each target with a store what is expected of it, before it is opened. */
void stack_stores_give(struct stack *stack, struct target_device *disk, bool line);
/* Note what was found, in the store of the disk and in the list of stores. Also where the tree could not be opened. */
void stack_stores_take(const struct stack *stack, struct target_device *disk, bool line);
/* Note where the stores end now, after they were measured. */
void stack_stores_measured(const struct stack *stack, struct target_device *disk);
/* The reaches_end() of a stack. */
bool stack_reaches_end(const struct target_device *disk, uint64_t *ret);
/* Note that the descriptors of all stores are closed. */
void stack_stores_closed(const struct stack_config *config);

/* Write the kept descriptor of each backing store below an open stack, in the order of the tree. Return how many there are. */
unsigned stack_witnesses(const struct target_device *disk, int ret[static TARGET_NODES_MAX]);
/* Write what the tree can reach of each backing store that is one file, in the order of the tree; without `writes` and `lock`. It has
 * grown with the store after measure(). Return how many there are. */
unsigned stack_ranges(const struct target_device *disk, struct disk_range ret[static TARGET_NODES_MAX]);
