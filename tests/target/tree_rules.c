/* SPDX-License-Identifier: MIT */
/* What must become of a tree of targets. */
#include "tests/target/tree_rules.h"

#include <stdio.h>
#include <string.h>

static unsigned part = 4096;

static const struct {
        unsigned flags;
        bool is_line; /* it leaves out what is before its part of its child, or nothing, and so does not break a line */
} kinds[_KIND_MAX] = {
        [NULL_LEAF] = {.flags = TARGET_NEVER_WAITS | TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE},
        [LOOP_LEAF] = {.flags = TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE | TARGET_REGISTERED_BUFFERS
                                | TARGET_STORE_OF_USER | TARGET_SCANS},
        [REST_OF] = {.flags = TARGET_NEVER_WAITS | TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE
                              | TARGET_REGISTERED_BUFFERS | TARGET_IS_PART | TARGET_SCANS,
                       .is_line = true},
        [PART_OF] = {.flags = TARGET_NEVER_WAITS | TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE
                              | TARGET_REGISTERED_BUFFERS | TARGET_IS_PART | TARGET_SCANS,
                       .is_line = true},
        [FAULT_OVER] = {.flags = TARGET_ONE_QUEUE | TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE | TARGET_IS_PART
                                 | TARGET_SEES_ALL | TARGET_FOR_TESTS | TARGET_SCANS,
                       .is_line = true},
        [LIST_OF] = {.flags = TARGET_NEVER_WAITS | TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE
                              | TARGET_REGISTERED_BUFFERS | TARGET_IS_PART | TARGET_SCANS},
        [STRIPE_OF] = {.flags = TARGET_NEVER_WAITS | TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE
                                | TARGET_REGISTERED_BUFFERS | TARGET_SCANS},
};

/* What becomes of the flags of all targets of a tree. */
static const struct {
        unsigned flag;
        enum { OF_ALL, OF_ANY, OF_NONE } rule;
} flag_rules[] = {
        {TARGET_NEVER_WAITS,        OF_ALL },
        {TARGET_ONE_QUEUE,          OF_ANY },
        {TARGET_NATIVE_FUA,         OF_ALL },
        {TARGET_REISSUE_SAFE,       OF_ALL },
        {TARGET_REGISTERED_BUFFERS, OF_ALL },
        {TARGET_STORE_OF_USER,      OF_ANY },
        {TARGET_IS_PART,            OF_NONE}, /* a whole disk is a part of nothing */
        {TARGET_SEES_ALL,           OF_ANY },
        {TARGET_FOR_TESTS,          OF_ANY },
        {TARGET_SCANS,              OF_ALL },
};

void tree_set_part(unsigned wanted)
{
        part = wanted;
}

unsigned tree_faults(const struct tree *tree)
{
        unsigned count = tree->kind == FAULT_OVER;

        for (unsigned i = 0; i < tree->width; i++)
                count += tree_faults(tree->below[i]);
        return count;
}

static unsigned count_loops(const struct tree *tree)
{
        unsigned count = tree->kind == LOOP_LEAF;

        for (unsigned i = 0; i < tree->width; i++)
                count += count_loops(tree->below[i]);
        return count;
}

void tree_place(
        const struct tree *tree, const struct leaf *null, const struct leaf *files, struct places *ret)
{
        unsigned first_file[TREE_MAX] = {};

        *ret = (struct places){.all = {{.tree = tree, .parent = -1}}, .count = 1, .loops = count_loops(tree)};
        for (unsigned i = 0; i < ret->count; i++) {
                const struct tree *above = ret->all[i].tree;
                unsigned file = first_file[i];

                if (above->width == 0)
                        ret->all[i].leaf = above->kind == LOOP_LEAF ? &files[file] : null;
                for (unsigned k = 0; k < above->width; k++) {
                        ret->all[ret->count] = (struct place){.tree = above->below[k], .parent = (int)i};
                        first_file[ret->count++] = file;
                        file += count_loops(above->below[k]);
                }
        }
}

unsigned expect_flags(const struct places *places)
{
        unsigned all = ~0U, any = 0, flags = 0;

        for (unsigned i = 0; i < places->count; i++) {
                all &= kinds[places->all[i].tree->kind].flags;
                any |= kinds[places->all[i].tree->kind].flags;
        }
        for (size_t i = 0; i < ARRAY_SIZE(flag_rules); i++)
                flags |= flag_rules[i].flag
                         & (flag_rules[i].rule == OF_ALL        ? all
                                 : flag_rules[i].rule == OF_ANY ? any
                                                                : 0);
        return flags;
}

void expect_pointer(const struct places *places, unsigned number, char ret[static PLACE_POINTER_SIZE])
{
        const struct place *place = &places->all[number];
        unsigned index = 0;
        size_t used;

        if (place->parent < 0) {
                snprintf(ret, PLACE_POINTER_SIZE, "/target");
                return;
        }
        expect_pointer(places, (unsigned)place->parent, ret);
        used = strlen(ret);
        for (unsigned i = 0; i < number; i++)
                index += places->all[i].parent == place->parent;
        if (places->all[place->parent].tree->kind >= FIRST_OF_MANY)
                snprintf(ret + used, PLACE_POINTER_SIZE - used, "/children/%u", index);
        else
                snprintf(ret + used, PLACE_POINTER_SIZE - used, "/child");
}

/* Of several the last. */
const char *expect_stable_path(const struct places *places)
{
        const char *path = NULL;

        for (unsigned i = 0; i < places->count; i++)
                if (places->all[i].leaf && places->all[i].leaf->stable[0])
                        path = places->all[i].leaf->stable;
        return path;
}

static uint32_t larger(uint32_t one, uint32_t other)
{
        return one > other ? one : other;
}

static uint32_t block_at(const struct places *places, unsigned number)
{
        const struct leaf *leaf = places->all[number].leaf;
        uint32_t largest = leaf ? leaf->params.logical_block_size : 0;

        for (unsigned i = 0; i < places->count; i++)
                if (places->all[i].parent == (int)number)
                        largest = larger(largest, block_at(places, i));
        return largest;
}

static uint64_t size_at(const struct places *places, unsigned number, unsigned *refused)
{
        const struct place *place = &places->all[number];
        uint64_t sum = 0, smallest = 0, size = 0;
        uint32_t block = block_at(places, number);
        bool open_end = false;

        for (unsigned i = 0; i < places->count; i++) {
                if (places->all[i].parent != (int)number)
                        continue;
                size = size_at(places, i, refused);
                if (open_end && place->tree->kind == LIST_OF)
                        *refused |= REFUSED_SIZE;
                if (sum % block != 0 && place->tree->kind == LIST_OF)
                        *refused |= REFUSED_BLOCKS;
                open_end = open_end || size == 0;
                sum += size;
                smallest = size != 0 && (smallest == 0 || size < smallest) ? size : smallest;
        }
        if (part % block != 0 && (place->tree->kind == REST_OF || place->tree->kind == PART_OF))
                *refused |= REFUSED_BLOCKS;
        switch (place->tree->kind) {
        case LOOP_LEAF:
                return place->leaf->size;
        case REST_OF:
                return size > 0 ? size - part : 0;
        case PART_OF:
                return place->parent < 0 ? OUTER_LENGTH : INNER_LENGTH;
        case LIST_OF:
                return open_end ? 0 : sum;
        case STRIPE_OF:
                return smallest / CHUNK * CHUNK * place->tree->width;
        default:
                return size;
        }
}

/* A disk has whole blocks. */
uint64_t expect_size(const struct places *places, unsigned *ret_refused)
{
        uint64_t size;

        *ret_refused = 0;
        size = size_at(places, 0, ret_refused);
        return size - size % block_at(places, 0);
}

/* The parts that stand above it in a line, up to where the shortest of them ends. */
struct reach expect_reach(const struct places *places, unsigned number)
{
        struct reach reach = {};
        int i = places->all[number].parent;

        for (; i >= 0 && kinds[places->all[i].tree->kind].is_line; i = places->all[i].parent) {
                enum kind kind = places->all[i].tree->kind;
                uint64_t length = places->all[i].parent < 0 ? OUTER_LENGTH : INNER_LENGTH;

                reach.start += kind == FAULT_OVER ? 0 : part;
                if (kind == PART_OF && (reach.end == 0 || reach.start + length < reach.end))
                        reach.end = reach.start + length;
                reach.is_seen = reach.is_seen || kind == FAULT_OVER;
        }
        reach.is_whole = i < 0;
        return reach;
}

/* A stripe asks for a whole row of its chunks, whatever is below it; another target for the most of what is below it. */
static uint32_t io_opt_at(const struct places *places, unsigned number)
{
        const struct place *place = &places->all[number];
        uint32_t largest = 0, below;

        if (place->tree->kind == STRIPE_OF)
                return CHUNK * place->tree->width;
        for (unsigned i = 0; i < places->count; i++)
                if (places->all[i].parent == (int)number && (below = io_opt_at(places, i)) > largest)
                        largest = below;
        return largest;
}

static uint32_t smaller(uint32_t one, uint32_t other)
{
        return one < other ? one : other;
}

/* What the kernel shows, by the leaves: the largest block, the smallest operation, and what holds for any or for all. */
struct disk_params expect_params(const struct places *places, uint64_t size)
{
        struct disk_params params = {.size = size,
                .max_discard_size = UINT32_MAX,
                .max_write_zeroes_size = UINT32_MAX,
                .queues = expect_flags(places) & TARGET_ONE_QUEUE ? 1 : QUEUES,
                .fastest = expect_flags(places) & TARGET_REGISTERED_BUFFERS ? DATA_PATH_ZERO_COPY
                                                                            : DATA_PATH_COPY};
        uint32_t io_opt = io_opt_at(places, 0);

        for (unsigned i = 0; i < places->count; i++) {
                const struct disk_params *leaf;

                if (!places->all[i].leaf)
                        continue;
                leaf = &places->all[i].leaf->params;
                params.logical_block_size = larger(params.logical_block_size, leaf->logical_block_size);
                params.physical_block_size = larger(params.physical_block_size, leaf->physical_block_size);
                params.io_min = larger(params.io_min, leaf->io_min);
                params.discard_granularity = larger(params.discard_granularity, leaf->discard_granularity);
                params.max_discard_size = smaller(params.max_discard_size, leaf->max_discard_size);
                params.max_write_zeroes_size =
                        smaller(params.max_write_zeroes_size, leaf->max_write_zeroes_size);
                params.volatile_cache = params.volatile_cache || leaf->volatile_cache;
                params.rotational = params.rotational || leaf->rotational;
                params.dma_alignment = larger(params.dma_alignment, leaf->dma_alignment);
                if (leaf->fastest != DATA_PATH_ZERO_COPY)
                        params.fastest = DATA_PATH_COPY;
        }
        params.max_discard_size &= -params.discard_granularity;
        params.discard_granularity = params.max_discard_size > 0 ? params.discard_granularity : 0;
        params.max_write_zeroes_size &= -params.logical_block_size;
        params.fua = params.volatile_cache;
        io_opt &= -io_opt; /* the driver takes powers of two */
        params.io_opt = io_opt >= params.io_min ? io_opt : 0;
        if (params.fastest == DATA_PATH_COPY)
                params.dma_alignment = 0;
        return params;
}
