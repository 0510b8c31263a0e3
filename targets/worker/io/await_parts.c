/* SPDX-License-Identifier: MIT */
/* Dividing a request among the children of its target, for await_parts() of target.h. The children are called as plain functions on
 * the coroutine of the request, one after another. */
#include "targets/worker/io/io_loop.h"
#include "targets/worker/io/lossy.h"

#include <errno.h>

/* Return what the callback of the child answers; a flush of one that has nothing to flush is done. */
static int call(const struct target *target, struct target_io *io)
{
        switch (io->op) {
        case IO_READ:
                return target->read(io);
        case IO_WRITE:
                return target->write ? target->write(io) : -EOPNOTSUPP;
        case IO_FLUSH:
                return target->flush ? target->flush(io) : 0;
        case IO_DISCARD:
                return target->discard ? target->discard(io) : -EOPNOTSUPP;
        case IO_WRITE_ZEROES:
                return target->write_zeroes ? target->write_zeroes(io) : -EOPNOTSUPP;
        default:
                return -EOPNOTSUPP;
        }
}

static bool carries_data(const struct target_io *io)
{
        return io->op == IO_READ || io->op == IO_WRITE;
}

/* Return 0 or -errno. */
static int perform_part(const struct target_io *io, const struct target_part *part)
{
        struct target_queue *queue = &io->queue->children[part->child];
        struct target_io inner = {
                .queue = queue,
                .op = io->op,
                .flags = io->flags,
                .offset = part->offset,
                .length = part->length,
                .tag = io->tag,
                .data = io->data ? (char *)io->data + part->position : NULL,
                .data_position = io->data ? 0 : io->data_position + part->position,
        };
        int r = call(queue->device->target, &inner);

        if (r < 0)
                return r;
        return !carries_data(io) || (uint32_t)r == part->length ? 0 : -EIO;
}

/* Return which of two results the core has to know: an error, and among errors one after which data may be lost. */
static int worse(const struct target_io *io, int before, int result)
{
        if (before >= 0)
                return result;
        if (result < 0 && result_is_lossy(io->op, io->flags, result)
                && !result_is_lossy(io->op, io->flags, before))
                return result;
        return before;
}

int await_parts(struct target_io *io, target_divide divide)
{
        struct target_cursor cursor = {};
        struct target_part part;
        int result = 0;

        while (divide(io, &cursor, &part))
                result = worse(io, result, perform_part(io, &part));
        if (result < 0)
                return result;
        return carries_data(io) ? (int)io->length : 0;
}
