/* SPDX-License-Identifier: MIT */
/* The null target: drops what is written, reads as zeroes.
 *
 * The memory of a tag is zeroes to begin with, and only a write to that tag changes it (the core has put the
 * data there before null_write() runs). So a read has something to do only after such a write, and a disk
 * that is only read, or only written, costs no pass over the data at all. */
#include "targets/null/null.h"
#include "targets/null/null_desc.h"

#include <errno.h>
#include <string.h>

struct null_queue {
        uint32_t *soiled; /* per tag: how many bytes from the beginning of its data may not be zero */
};

static int null_open(struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        /* io_ends_with_process would be true, too, but the look-up of a descriptor with each COMMIT is a
         * half percent of what such short requests cost. */
        (void)device;
        (void)problems;
        *ret = (struct target_geometry){
                .logical_block_size = 512,
                .physical_block_size = 4096,
                .discard_granularity = 512,
                .max_discard_size = 1U << 30,
                .max_write_zeroes_size = 1U << 30,
        };
        return 0;
}

static int null_start_queue(struct target_queue *queue)
{
        struct null_queue *state = queue->state;

        state->soiled = calloc(queue->device->queue_depth, sizeof(*state->soiled));
        if (!state->soiled)
                return -ENOMEM;
        /* Below another target the data begins anywhere in that of the tag, which others fill as well: each read clears it. No
         * request is as long as this, so it stays. */
        for (unsigned i = 0; queue->device->is_below && i < queue->device->queue_depth; i++)
                state->soiled[i] = UINT32_MAX;
        return 0;
}

static void null_stop_queue(struct target_queue *queue)
{
        struct null_queue *state = queue->state;

        free(state->soiled);
        state->soiled = NULL;
}

/* Not inlined, so that most reads need no stack. */
__attribute__((noinline)) static void wipe(const struct target_io *io, uint32_t *soiled)
{
        memset(io->data, 0, io->length < *soiled ? io->length : *soiled);
        if (io->length >= *soiled)
                *soiled = 0;
}

static int null_read(struct target_io *io)
{
        const struct null_queue *state = io->queue->state;
        uint32_t *soiled = &state->soiled[io->tag];

        if (__builtin_expect(*soiled > 0, 0))
                wipe(io, soiled);
        return (int)io->length;
}

static int null_write(struct target_io *io)
{
        const struct null_queue *state = io->queue->state;

        if (io->length > state->soiled[io->tag])
                state->soiled[io->tag] = io->length;
        return (int)io->length;
}

static int null_nothing(struct target_io *io)
{
        (void)io;
        return 0;
}

const struct target null_target = {
        .desc = &null_desc,
        .queue_size = sizeof(struct null_queue),
        .open = null_open,
        .start_queue = null_start_queue,
        .stop_queue = null_stop_queue,
        .read = null_read,
        .write = null_write,
        .flush = null_nothing,
        .discard = null_nothing,
        .write_zeroes = null_nothing,
};
