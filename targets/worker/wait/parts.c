/* SPDX-License-Identifier: MIT */
/* Dividing a request among the children of its target, for await_parts() of target.h. A request with one part calls its child as a
 * plain function, on its own coroutine. One with several has coroutines of await_all() beside it, each of which takes one part after
 * another: on a queue that reserves none, or has none free, the request performs all of them itself. */
#include "targets/target_wait.h"
#include "targets/worker/io/lossy.h"

#include <errno.h>
#include <string.h>

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

enum {
        AT_ONCE_MAX = 1 + TARGET_CHILDREN_MAX, /* parts of a request at the same time */
        LOOKED_AT = 2,                         /* parts of a request that has several, when that is known */
};

/* What the coroutines of one request share. Between two awaits a queue is atomic, so each takes another part. */
struct parts {
        struct target_io *io;
        target_divide divide;
        struct target_cursor cursor;           /* behind the last of `known` */
        struct target_part known[AT_ONCE_MAX]; /* the first ones: as many as there are coroutines */
        unsigned count, begun;                 /* of them */
        bool more;                             /* there may be some that are not */
        int result;
};

/* Return false if there is none any more. */
static bool take(struct parts *parts, struct target_part *ret)
{
        if (parts->begun < parts->count) {
                *ret = parts->known[parts->begun++];
                return true;
        }
        return parts->more && parts->divide(parts->io, &parts->cursor, ret);
}

/* Perform parts until there is none any more: as many as the other coroutines of the request leave. What they have noted meanwhile is
 * read after the part has ended. */
static int perform_rest(void *argument)
{
        struct parts *parts = argument;
        struct target_part part;

        while (take(parts, &part)) {
                int r = perform_part(parts->io, &part);

                parts->result = worse(parts->io, parts->result, r);
        }
        return 0;
}

/* Perform the parts `first`, and those from the cursor on. Not inlined: what it has on its stack would cost the request with one part,
 * too. That is not cleared: a request may have few parts. */
__attribute__((noinline)) static int perform_all(struct target_io *io, target_divide divide,
        const struct target_part first[static LOOKED_AT], struct target_cursor cursor)
{
        struct target_child children[AT_ONCE_MAX];
        struct parts parts;

        parts.io = io;
        parts.divide = divide;
        parts.cursor = cursor;
        memcpy(parts.known, first, LOOKED_AT * sizeof(*first));
        parts.count = LOOKED_AT;
        parts.begun = 0;
        parts.more = true;
        parts.result = 0;
        while (parts.more && parts.count < AT_ONCE_MAX) {
                parts.more = divide(io, &parts.cursor, &parts.known[parts.count]);
                parts.count += parts.more;
        }
        for (unsigned i = 0; i < parts.count; i++)
                children[i] = (struct target_child){.run = perform_rest, .argument = &parts};
        (void)await_all(io->queue, children, parts.count); /* each returns 0 */
        return parts.result;
}

int await_parts(struct target_io *io, target_divide divide)
{
        struct target_part first[LOOKED_AT];
        struct target_cursor cursor = {};
        int r = 0;

        if (divide(io, &cursor, &first[0]))
                r = divide(io, &cursor, &first[1]) ? perform_all(io, divide, first, cursor)
                                                   : perform_part(io, &first[0]);
        if (r < 0)
                return r;
        return carries_data(io) ? (int)io->length : 0;
}
