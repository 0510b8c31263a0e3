/* SPDX-License-Identifier: MIT */
/* What an open tree of targets consists of: of stack.c, of stack_stores.c, which takes care of its backing stores, and of
 * stack_kept.c, which divides its kept memory. */
#pragma once

#include "targets/worker/disk/stack.h"

struct stack_node {
        struct target_geometry
                geometry;     /* its claims, sharing and stable path are moved to that of the stack */
        unsigned first_file;  /* of its files among those of the disk */
        unsigned first_place; /* of its places for descriptors of a queue among those of the disk */
        bool is_open;
};

struct stack {
        const struct stack_config *config;
        struct target_device *devices; /* one for each node */
        struct stack_node *nodes;
};

static inline unsigned stack_count(const struct stack *stack)
{
        return stack->config->tree->count;
}
