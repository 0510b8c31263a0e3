/* SPDX-License-Identifier: MIT */
/* Where each target of a tree has its kept memory, and which memory it is. Both programs compute it: the supervisor makes the
 * memory, and the worker finds the areas in it. Pure.
 *
 * The targets have their areas in the order of the tree, one behind another, within the memory of the disk and within that of
 * each queue. So the areas of all targets are found together, or are zeroes together. */
#pragma once

#include "targets/target_tree.h"

enum { TARGET_KEPT_ALIGNMENT = 64 }; /* bytes, of each area: struct target_kept */

struct target_tree_kept {
        uint64_t disk_bytes,
                queue_bytes; /* of all areas, with what is between them; both 0: there are none */
        struct {
                uint64_t disk, queue; /* bytes from the first area on; only of a target that has one */
        } offsets[TARGET_NODES_MAX];
        /* What the region says of it. Of a tree where only the outermost target keeps something, that target and its version, as of that
         * target alone. Else another name for each other layout: of which targets, at which places, with which versions and sizes. */
        char name[32];
        uint32_t version;
};

/* Compute the layout of a tree that was parsed without problems. */
void target_tree_kept(const struct target_tree *tree, struct target_tree_kept *ret);
/* Return whether a target of the tree keeps something. */
bool target_tree_keeps(const struct target_tree *tree);
/* Return the number of the first target whose area ends behind what a disk, or a queue, can have (TARGET_KEPT_DISK_MAX,
 * TARGET_KEPT_QUEUE_MAX); -1: there is none. */
int target_tree_kept_beyond(const struct target_tree *tree);
