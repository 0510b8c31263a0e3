/* SPDX-License-Identifier: MIT */
/* The linear target: a part of a child, or children one after another. It only maps offsets, so it never looks at the bytes, and
 * what a child has acknowledged is acknowledged. */
#include "targets/linear/linear.h"
#include "targets/linear/linear_desc.h"

#include "targets/linear/linear_map.h"
#include "targets/linear/linear_options.h"
#include "targets/scrub/scrub.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static uint64_t size_of_list(const struct target_device *device, const uint64_t *children)
{
        uint64_t size = 0;

        for (unsigned i = 0; i < device->child_count; i++) {
                if (children[i] == 0)
                        return 0;
                size = children[i] <= UINT64_MAX - size ? size + children[i] : UINT64_MAX;
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

/* A new disk has the blocks of its spec, or those of its children. A disk that is there wants its own: they are those of its spec, or the
 * largest of the whole tree. The first open compared the latter with nothing, so a later one must not. */
static uint32_t block_size_of(const struct target_device *device, const struct target_geometry *geometry)
{
        uint32_t wanted = device->wanted_block_size, below = geometry->logical_block_size;

        if (wanted == 0 || (device->store.served && below < wanted))
                return below;
        return wanted;
}

/* Each part must begin and end where a block does. */
static int check_blocks(const struct target_device *device, const struct target_geometry *geometry,
        struct problem_list *problems)
{
        const struct linear_options *options = device->config;
        uint32_t block_size = block_size_of(device, geometry);
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

static int refuse_start(
        unsigned child, int error, const char *reason, const char *sentence, struct problem_list *problems)
{
        char pointer[32];
        int r;

        snprintf(pointer, sizeof(pointer), "/target/children/%u", child);
        r = problem_add(problems, error, pointer, reason, "%s", sentence);
        return r < 0 ? r : -error;
}

/* Check where child `next` would begin. Bytes of two children must never have the same place. */
static int check_start(unsigned next, uint64_t start, uint64_t size_before, uint32_t block_size,
        struct problem_list *problems)
{
        char sentence[192];

        if (size_before == 0)
                return refuse_start(next - 1, EINVAL, "SizeMissing",
                        "This target has no size of its own, and another one follows it; give it as the "
                        "child of a linear target with a length.",
                        problems);
        if (size_before > UINT64_MAX - start)
                return refuse_start(next, EFBIG, "TooLarge",
                        "This target would begin where no disk ends; leave it out, or make those before it "
                        "shorter.",
                        problems);
        start += size_before;
        if (block_size == 0 || start % block_size == 0)
                return 0;
        snprintf(sentence, sizeof(sentence),
                "This target would begin at byte %" PRIu64
                " of the disk, which is not a multiple of the block size, %" PRIu32
                " bytes here; correct the length of the one before it.",
                start, block_size);
        return refuse_start(next, EINVAL, "OffsetNotAMultiple", sentence, problems);
}

static int place_children(const struct target_device *device, const struct target_geometry *geometry,
        struct linear_map *map, struct problem_list *problems)
{
        int r = 0;

        map->starts[0] = 0;
        map->count = device->child_count;
        for (unsigned i = 1; r >= 0 && i < map->count; i++) {
                uint64_t before = device->children[i - 1].size;

                r = check_start(i, map->starts[i - 1], before, block_size_of(device, geometry), problems);
                map->starts[i] = map->starts[i - 1] + before;
        }
        return r;
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
        return place_children(device, ret, map, problems);
}

static bool divide(const struct target_io *io, struct target_cursor *cursor, struct target_part *ret)
{
        return linear_map_divide(io->queue->device->state, io, cursor, ret);
}

static int linear_perform(struct target_io *io)
{
        return await_parts(io, divide);
}

static int linear_scan(struct target_action *action, struct target_queue *queue, uint64_t offset,
        uint32_t length, void *memory)
{
        return scrub_children(action, queue, divide, offset, length, memory);
}

const struct target linear_target = {
        .desc = &linear_desc,
        .device_size = sizeof(struct linear_map),
        .open = linear_open,
        .size = linear_size,
        .is_part = linear_is_part,
        .divide = divide,
        .read = linear_perform,
        .write = linear_perform,
        .flush = linear_perform,
        .discard = linear_perform,
        .write_zeroes = linear_perform,
        .act = scrub_act,
        .scan = linear_scan,
};
