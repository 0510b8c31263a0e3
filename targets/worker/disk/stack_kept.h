/* SPDX-License-Identifier: MIT */
/* The kept memory of the disk, divided among the targets of a tree: each sees its own areas alone. */
#pragma once

#include "targets/worker/disk/stack_internal.h"

/* Give each target of an open stack its areas of that of the disk. Once, before start_device() of any. Return 0 or -ENOMEM. */
int stack_kept_divide(struct stack *stack, const struct target_device *disk);
/* Return the area of a target in the memory of a queue; NULL: it has none. */
struct target_kept *stack_kept_of_queue(const struct stack *stack, unsigned number, unsigned queue);
/* Free what the division needed; the memory stays. */
void stack_kept_close(struct stack *stack);
