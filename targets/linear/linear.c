/* SPDX-License-Identifier: MIT */
/* The linear target: a part of a child, or children one after another. It only maps offsets, so it never looks at the bytes, and
 * what a child has acknowledged is acknowledged. */
#include "targets/linear/linear.h"

#include "targets/linear/linear_map.h"
#include "targets/linear/linear_options.h"

#include <errno.h>
#include <inttypes.h>

extern const struct target_desc linear_desc;

static uint64_t size_of_list(const struct target_device *device, const uint64_t *children)
{
        uint64_t size = 0;

        for (unsigned i = 0; i < device->child_count; i++) {
                if (children[i] == 0 || children[i] > UINT64_MAX - size)
                        return 0;
                size += children[i];
        }
        return size;
}

/* Of a child that ends before the part, its rest: what is too short, the core reports. */
static uint64_t linear_size(const struct target_device *device, const uint64_t *children)
{
        const struct linear_options *options = device->config;
        uint64_t rest;

        if (device->has_list)
                return size_of_list(device, children);
        if (children[0] == 0)
                return options->length;
        rest = children[0] > options->offset ? children[0] - options->offset : 1; /* less than any block */
        return options->length > 0 && options->length < rest ? options->length : rest;
}

static bool linear_is_part(const struct target_device *device, uint64_t *ret)
{
        const struct linear_options *options = device->config;

        if (device->has_list)
                return false;
        *ret = options->offset;
        return true;
}

static int check_end(const struct target_device *device, struct problem_list *problems)
{
        const struct linear_options *options = device->config;
        uint64_t there = device->children[0].size;
        int r;

        if (there == 0 || (options->offset < there && options->length <= there - options->offset))
                return 0;
        r = problem_add(problems, ENOSPC, options->length > 0 ? "/target/length" : "/target/offset",
                "OffsetBeyondEnd",
                "The part of %" PRIu64 " bytes from byte %" PRIu64
                " on is not within the target below, which has %" PRIu64
                " bytes; correct it, or, if the backing store was cut off, restore that from a copy: what is "
                "only grown reads as zeroes.",
                options->length, options->offset, there);
        return r < 0 ? r : -ENOSPC;
}

/* Each block of the disk must lie in one block of a child. */
static int check_blocks(const struct target_device *device, const struct target_geometry *geometry,
        struct problem_list *problems)
{
        const struct linear_options *options = device->config;
        uint32_t block_size =
                device->wanted_block_size != 0 ? device->wanted_block_size : geometry->logical_block_size;
        bool offset_fits = block_size == 0 || options->offset % block_size == 0,
             length_fits = block_size == 0 || options->length % block_size == 0;
        int r;

        if (offset_fits && length_fits)
                return 0;
        r = problem_add(problems, EINVAL, offset_fits ? "/target/length" : "/target/offset",
                "OffsetNotAMultiple",
                "The %s of %" PRIu64 " bytes is not a multiple of the block size, %" PRIu32
                " bytes here; correct it.",
                offset_fits ? "length" : "offset", offset_fits ? options->length : options->offset,
                block_size);
        return r < 0 ? r : -EINVAL;
}

static void place_children(const struct target_device *device, struct linear_map *map)
{
        uint64_t start = 0;

        map->count = device->child_count;
        for (unsigned i = 0; i < map->count; i++) {
                map->starts[i] = start;
                start += device->children[i].size; /* each but the last has a length */
        }
}

static int linear_open(
        struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        const struct linear_options *options = device->config;
        struct linear_map *map = device->state;
        int r = 0;

        if (device->child_count == 0 || device->child_count > LINEAR_CHILDREN_MAX)
                return -EINVAL;
        if (!device->has_list)
                r = check_end(device, problems);
        if (r >= 0)
                r = check_blocks(device, ret, problems);
        if (r < 0)
                return r;
        map->offset = device->has_list ? 0 : options->offset;
        place_children(device, map);
        return 0;
}

static bool divide(const struct target_io *io, struct target_cursor *cursor, struct target_part *ret)
{
        return linear_map_divide(io->queue->device->state, io, cursor, ret);
}

static int linear_perform(struct target_io *io)
{
        return await_parts(io, divide);
}

const struct target linear_target = {
        .desc = &linear_desc,
        .device_size = sizeof(struct linear_map),
        .open = linear_open,
        .size = linear_size,
        .is_part = linear_is_part,
        .read = linear_perform,
        .write = linear_perform,
        .flush = linear_perform,
        .discard = linear_perform,
        .write_zeroes = linear_perform,
};
