/* SPDX-License-Identifier: MIT */
/* A tree of targets as one target: the core sees a struct target like any other. Its callbacks call those of the outermost target, on
 * the coroutine of the request, and that one calls its children.
 *
 * Where each target above the only one with a backing store just leaves out what is before its part, the disk lies in that store as
 * it is: the stack is linear (struct target_device), and the core moves, locks, flushes and fences it as it does without the
 * targets above. A store that lies otherwise in a tree is opened only by the list of CONFIG (struct worker_config). ublkd sends none
 * yet, and starts no such disk (target_tree_check()). */
#pragma once

#include "targets/target.h"
#include "targets/target_tree.h"

/* The options of a stack. */
struct stack_config {
        struct target target; /* of the stack; its desc is the next member */
        struct target_desc desc;
        const struct target_tree *tree;
        const struct target *targets[TARGET_NODES_MAX]; /* of each node */
        /* One for each store of the tree, in its order: what open() is to find, and then what it found, also if it failed. NULL: the
         * core has one store at most, struct target_device has it, and the disk lies in it as it is. */
        struct target_store *stores;
        unsigned store_count;
        bool stores_anywhere; /* only of a test: open stores among children without a list */
};

/* Make the target of a tree in *ret, where ret->targets are set already. Its options are *ret, which stays where it is. */
void stack_make(const struct target_tree *tree, struct stack_config *ret);

/* Write the pointer of a node of the tree. */
void stack_pointer(const struct target_device *disk, unsigned node, char ret[static TARGET_POINTER_SIZE]);

/* Give each target of an open stack what the core has chosen of the disk: block size, queues, whether it is read-only. Before
 * the first queue is started. */
void stack_settle(const struct target_device *disk);
