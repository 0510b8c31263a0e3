/* SPDX-License-Identifier: MIT */
/* The stripe target: a disk over several targets, chunk by chunk. It only maps offsets, so it never looks at the bytes, and what all
 * children have acknowledged is acknowledged. */
#include "targets/stripe/stripe.h"
#include "targets/stripe/stripe_desc.h"

#include "targets/stripe/stripe_map.h"
#include "targets/stripe/stripe_options.h"
#include "targets/scrub/scrub.h"

#include <errno.h>

/* As many whole chunks of each child as the smallest one has. */
static uint64_t stripe_size(const struct target_device *device, const uint64_t *children)
{
        const struct stripe_options *options = device->config;
        uint64_t chunks = UINT64_MAX / (options->chunk * device->child_count);
        bool known = false;

        for (unsigned i = 0; i < device->child_count; i++) {
                if (children[i] == 0)
                        continue;
                known = true;
                if (children[i] / options->chunk < chunks)
                        chunks = children[i] / options->chunk;
        }
        if (!known)
                return 0;
        return chunks > 0 ? chunks * options->chunk * device->child_count : 1; /* less than any block */
}

static int stripe_open(
        struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        const struct stripe_options *options = device->config;
        struct stripe_map *map = device->state;

        (void)problems;
        if (device->child_count == 0)
                return -EINVAL;
        *map = (struct stripe_map){.chunk = options->chunk, .count = device->child_count};
        ret->io_opt = (uint32_t)options->chunk * device->child_count; /* 63 of 16 MiB at most */
        return 0;
}

static bool divide(const struct target_io *io, struct target_cursor *cursor, struct target_part *ret)
{
        return stripe_map_divide(io->queue->device->state, io, cursor, ret);
}

static int stripe_perform(struct target_io *io)
{
        return await_parts(io, divide);
}

static int stripe_scan(struct target_action *action, struct target_queue *queue, uint64_t offset,
        uint32_t length, void *memory)
{
        return scrub_children(action, queue, divide, offset, length, memory);
}

const struct target stripe_target = {
        .desc = &stripe_desc,
        .device_size = sizeof(struct stripe_map),
        .open = stripe_open,
        .size = stripe_size,
        .divide = divide,
        .read = stripe_perform,
        .write = stripe_perform,
        .flush = stripe_perform,
        .discard = stripe_perform,
        .write_zeroes = stripe_perform,
        .act = scrub_act,
        .scan = stripe_scan,
};
