/* SPDX-License-Identifier: MIT */
/* From what is wished for and what the backing store offers to the disk that the kernel shows.
 *
 * The driver takes most sizes as powers of two, so that is what comes out here. */
#include "targets/worker/disk/disk_geometry.h"

#include "ublkd/values/quantity.h"

#include <inttypes.h>
#include <string.h>

static const uint64_t DISK_SIZE_MAX = UINT64_C(4096) << 40; /* as in schemas/device.schema.json */

enum { BLOCK_SIZE_MIN = 512, BLOCK_SIZE_MAX = 4096, IO_SIZE_MIN = 4096, IO_SIZE_MAX = 32 << 20 };

static bool is_power_of_two(uint64_t value)
{
        return value != 0 && (value & (value - 1)) == 0;
}

static uint32_t power_of_two_below(uint32_t value)
{
        return value == 0 ? 0 : 1U << (31 - __builtin_clz(value));
}

static uint32_t larger(uint32_t one, uint32_t other)
{
        return one > other ? one : other;
}

static int check_block_size(
        const struct disk_wish *wish, uint32_t minimum, uint32_t block_size, struct problem_list *problems)
{
        if (minimum > BLOCK_SIZE_MAX)
                return problem_add(problems, EINVAL, "/target", "BackingBlockSizeUnsupported",
                        "The backing store has blocks of %" PRIu32
                        " bytes; the largest that can be served is %d.",
                        minimum, BLOCK_SIZE_MAX);
        if (block_size > BLOCK_SIZE_MAX || block_size < BLOCK_SIZE_MIN || !is_power_of_two(block_size))
                return problem_add(problems, EINVAL, "/blockSize", "BlockSizeUnsupported",
                        "A block size of %" PRIu32
                        " bytes cannot be served; use a power of two from %d to %d.",
                        block_size, BLOCK_SIZE_MIN, BLOCK_SIZE_MAX);
        if (block_size < minimum)
                return problem_add(problems, EINVAL, "/blockSize", "BlockSizeTooSmall",
                        "The disk needs blocks of %" PRIu32
                        " bytes, and the backing store can only do %" PRIu32
                        "; give a disk that exists a store with its block size again, or a new disk another "
                        "blockSize.",
                        wish->block_size, minimum);
        return 0;
}

/* *ret is the size in whole blocks, 0 where a problem was added. */
int disk_size_refuse(uint64_t there, uint64_t wanted, bool has_data, struct problem_list *problems)
{
        char has[SIZE_TEXT_MAX], needed[SIZE_TEXT_MAX];

        format_size(there, has);
        format_size(wanted, needed);
        return problem_add(problems, ENOSPC, "/size", "BackingTooSmall",
                "The backing store offers %s, and the disk needs %s; %s.", has, needed,
                has_data ? "if the backing store was cut off, restore it from a copy: what is only grown "
                           "reads as "
                           "zeroes. Grow it only if the disk was never that large"
                         : "grow the backing store, or set a smaller size");
}

static int choose_size(const struct disk_wish *wish, const struct target_geometry *geometry,
        uint32_t block_size, uint64_t *ret, struct problem_list *problems)
{
        uint64_t wanted = wish->size, there = geometry->size;

        if (wanted == 0 && there == 0)
                return problem_add(problems, EINVAL, "/size", "SizeMissing",
                        "This target has no size of its own; give one in size.");
        if (wanted % block_size != 0)
                return problem_add(problems, EINVAL, "/size", "SizeNotAMultiple",
                        "The size of %" PRIu64 " bytes is not a multiple of the block size, %" PRIu32
                        " bytes here; change size, or set a smaller blockSize.",
                        wanted, block_size);
        if (wanted > DISK_SIZE_MAX || (wanted == 0 && there > DISK_SIZE_MAX))
                return problem_add(problems, EFBIG, "/size", "TooLarge",
                        "The disk would have %" PRIu64
                        " bytes, and a disk has 4096TiB at most; set size to that "
                        "or less.",
                        wanted != 0 ? wanted : there);
        if (there != 0 && wanted > there)
                return disk_size_refuse(there, wanted, wish->has_data, problems);
        if (wanted == 0 && there < block_size)
                return problem_add(problems, ENOSPC, "/target", "BackingTooSmall",
                        "The backing store offers %" PRIu64 " bytes, which is less than one block of %" PRIu32
                        "; %s.",
                        there, block_size,
                        wish->has_data ? "if it was cut off, restore it from a copy: what is only grown "
                                         "reads as zeroes"
                                       : "grow it");
        *ret = wanted != 0 ? wanted : there - there % block_size;
        return 0;
}

static uint32_t hint(uint32_t size, uint32_t largest)
{
        return power_of_two_below(size < largest ? size : largest);
}

static void choose_sizes_of_io(
        const struct disk_wish *wish, const struct target_geometry *geometry, struct disk_params *params)
{
        uint32_t block_size = params->logical_block_size;
        uint32_t largest = wish->max_io_size < IO_SIZE_MAX ? wish->max_io_size : IO_SIZE_MAX;

        params->max_io_size = larger(largest - largest % block_size, IO_SIZE_MIN);
        /* Hints, and the driver takes none above the largest request. */
        params->physical_block_size =
                larger(hint(geometry->physical_block_size, params->max_io_size), block_size);
        params->io_min = larger(hint(geometry->io_min, params->max_io_size), params->physical_block_size);
        /* Of a stripe that is not a power of two, only its factor that is one helps. */
        params->io_opt = geometry->io_opt & -geometry->io_opt;
        if (params->io_opt < params->io_min)
                params->io_opt = 0;
}

static void choose_operations(
        const struct target_geometry *geometry, const struct target *target, struct disk_params *params)
{
        uint32_t block_size = params->logical_block_size;

        params->volatile_cache = geometry->volatile_cache && target->flush;
        params->fua = params->volatile_cache; /* by the target, or by the core with a flush */
        if (params->read_only)
                return;
        if (target->discard && geometry->max_discard_size > 0) {
                uint32_t granularity = larger(power_of_two_below(geometry->discard_granularity), block_size);

                params->discard_granularity = granularity;
                params->max_discard_size = larger(geometry->max_discard_size & -granularity, granularity);
        }
        if (target->write_zeroes && geometry->max_write_zeroes_size > 0)
                params->max_write_zeroes_size =
                        larger(geometry->max_write_zeroes_size & -block_size, block_size);
}

static void choose_path(
        const struct target_geometry *geometry, const struct target *target, struct disk_params *params)
{
        params->fastest = DATA_PATH_COPY;
        if (!geometry->prefers_zero_copy || !(target->desc->flags & TARGET_REGISTERED_BUFFERS))
                return;
        params->fastest = DATA_PATH_ZERO_COPY;
        params->dma_alignment = geometry->dma_alignment;
        params->max_segment_size = geometry->max_segment_size;
        params->max_segments = geometry->max_segments;
}

/* On failure params->claims and params->sharing are the caller's to clear. */
static int choose_claims(const struct target_geometry *geometry, struct disk_params *params)
{
        int r = backing_claims_append(&params->claims, &geometry->claims);

        if (r >= 0)
                r = problem_list_append(&params->sharing, &geometry->sharing);
        for (size_t i = 0; i < params->claims.count; i++)
                params->claims.items[i].writes = !params->read_only;
        if (!geometry->claims_have_ends)
                backing_claims_resize(&params->claims, params->size);
        return r;
}

uint64_t disk_size_max(uint64_t there, uint32_t block_size)
{
        uint64_t size = there < DISK_SIZE_MAX ? there : DISK_SIZE_MAX;

        return there == 0 ? UINT64_MAX : size - size % block_size;
}

int disk_geometry(const struct disk_wish *wish, const struct target_geometry *geometry,
        const struct target *target, struct disk_params *ret, struct problem_list *problems)
{
        uint32_t minimum = larger(geometry->logical_block_size_min, BLOCK_SIZE_MIN);
        uint32_t preferred = larger(geometry->logical_block_size, minimum);
        struct disk_params params = {
                .logical_block_size = wish->block_size != 0 ? wish->block_size : preferred,
                .read_only = wish->read_only || geometry->read_only || !target->write,
                .rotational = geometry->rotational,
                .queues = target->desc->flags & TARGET_ONE_QUEUE ? 1 : wish->queues,
                .queue_depth = wish->queue_depth,
        };
        size_t before = problems->count + problems->dropped;
        int r;

        r = check_block_size(wish, minimum, params.logical_block_size, problems);
        if (r < 0)
                return r;
        if (problems->count + problems->dropped == before) {
                r = choose_size(wish, geometry, params.logical_block_size, &params.size, problems);
                if (r < 0)
                        return r;
        }
        if (problems->count + problems->dropped != before)
                return -EINVAL;
        params.size_max = disk_size_max(geometry->size, params.logical_block_size);
        choose_sizes_of_io(wish, geometry, &params);
        choose_operations(geometry, target, &params);
        choose_path(geometry, target, &params);
        r = choose_claims(geometry, &params);
        if (r < 0) {
                backing_claims_clear(&params.claims);
                problem_list_clear(&params.sharing);
                return r;
        }
        *ret = params;
        return 0;
}
