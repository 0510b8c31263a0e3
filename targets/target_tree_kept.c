/* SPDX-License-Identifier: MIT */
/* Where each target of a tree has its kept memory. */
#include "targets/target_tree_kept.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Of what this file computes for several areas: another one whenever the same declarations give other offsets. */
enum { LAYOUT_VERSION = 1 };

/* Place an area behind those that end at *end. Return its offset. */
static uint64_t place(uint64_t bytes, uint64_t *end)
{
        uint64_t offset = (*end + TARGET_KEPT_ALIGNMENT - 1) / TARGET_KEPT_ALIGNMENT * TARGET_KEPT_ALIGNMENT;

        if (bytes == 0)
                return 0;
        *end = offset + bytes;
        return offset;
}

static bool keeps(const struct target_node *node)
{
        return node->desc->kept_disk_bytes > 0 || node->desc->kept_queue_bytes > 0;
}

bool target_tree_keeps(const struct target_tree *tree)
{
        for (unsigned i = 0; i < tree->count; i++)
                if (keeps(&tree->nodes[i]))
                        return true;
        return false;
}

/* ---- the name ---- */

/* FNV-1a. Two layouts under one disk differ by an upgrade at most: no client chooses them. */
static void add_byte(uint64_t *hash, unsigned char byte)
{
        *hash = (*hash ^ byte) * UINT64_C(0x100000001b3);
}

static void add_number(uint64_t *hash, uint64_t number)
{
        for (unsigned i = 0; i < sizeof(number); i++)
                add_byte(hash, (unsigned char)(number >> 8 * i));
}

static void add_text(uint64_t *hash, const char *text)
{
        do
                add_byte(hash, (unsigned char)*text);
        while (*text++ != '\0');
}

/* The way from the node to the root: with the level it is one place, whatever there is beside it. */
static void add_place(uint64_t *hash, const struct target_tree *tree, unsigned number)
{
        add_number(hash, tree->nodes[number].level);
        for (; number > 0; number = tree->nodes[number].parent)
                add_number(hash, (uint64_t)(tree->nodes[number].index + 1));
}

static uint64_t hash_of(const struct target_tree *tree)
{
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (unsigned i = 0; i < tree->count; i++) {
                const struct target_desc *desc = tree->nodes[i].desc;

                if (!keeps(&tree->nodes[i]))
                        continue;
                add_place(&hash, tree, i);
                add_text(&hash, desc->name);
                add_number(&hash, desc->kept_version);
                add_number(&hash, desc->kept_disk_bytes);
                add_number(&hash, desc->kept_queue_bytes);
        }
        return hash;
}

/* No target has a name with a slash. */
static void name_layout(const struct target_tree *tree, bool only_outermost, struct target_tree_kept *ret)
{
        int length = only_outermost
                             ? snprintf(ret->name, sizeof(ret->name), "%s", tree->nodes[0].desc->name)
                             : snprintf(ret->name, sizeof(ret->name), "tree/%016" PRIx64, hash_of(tree));

        assert(length > 0 && (size_t)length < sizeof(ret->name));
        ret->version = only_outermost ? tree->nodes[0].desc->kept_version : LAYOUT_VERSION;
}

/* ---- the layout ---- */

void target_tree_kept(const struct target_tree *tree, struct target_tree_kept *ret)
{
        bool only_outermost = true;

        *ret = (struct target_tree_kept){};
        for (unsigned i = 0; i < tree->count; i++) {
                const struct target_desc *desc = tree->nodes[i].desc;

                ret->offsets[i].disk = place(desc->kept_disk_bytes, &ret->disk_bytes);
                ret->offsets[i].queue = place(desc->kept_queue_bytes, &ret->queue_bytes);
                only_outermost = only_outermost && (i == 0 || !keeps(&tree->nodes[i]));
        }
        name_layout(tree, only_outermost, ret);
}

int target_tree_kept_beyond(const struct target_tree *tree)
{
        struct target_tree_kept kept;

        target_tree_kept(tree, &kept);
        for (unsigned i = 0; i < tree->count; i++) {
                const struct target_desc *desc = tree->nodes[i].desc;

                if (kept.offsets[i].disk + desc->kept_disk_bytes > TARGET_KEPT_DISK_MAX
                        || kept.offsets[i].queue + desc->kept_queue_bytes > TARGET_KEPT_QUEUE_MAX)
                        return (int)i;
        }
        return -1;
}
