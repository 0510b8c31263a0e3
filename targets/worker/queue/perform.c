/* SPDX-License-Identifier: MIT */
/* From a request to its answer: what the core does around a target's callback. */
#include "targets/worker/queue/perform.h"

#include "targets/worker/io/lossy.h"

enum { ERRNO_MAX = 4095 };

typedef int (*callback)(struct target_io *io);

static const size_t callbacks[_IO_OP_MAX] = {
        [IO_READ] = offsetof(struct target, read),
        [IO_WRITE] = offsetof(struct target, write),
        [IO_FLUSH] = offsetof(struct target, flush),
        [IO_DISCARD] = offsetof(struct target, discard),
        [IO_WRITE_ZEROES] = offsetof(struct target, write_zeroes),
};

/* NULL if the target cannot do it, or if it is not a known operation. */
static callback callback_of(const struct target *target, enum io_op op)
{
        return (unsigned)op < _IO_OP_MAX ? *(const callback *)((const char *)target + callbacks[op]) : NULL;
}

static bool changes_data(enum io_op op)
{
        return op == IO_WRITE || op == IO_DISCARD || op == IO_WRITE_ZEROES;
}

static bool carries_data(enum io_op op)
{
        return op == IO_READ || op == IO_WRITE;
}

/* The kernel checks all this too. It is cheap, and a mistake would cost data. */
static int check(const struct target_device *device, const struct target_io *io)
{
        uint64_t block_mask = device->logical_block_size - 1, size = target_size(device);

        if (io->op == IO_FLUSH)
                return 0;
        if (changes_data(io->op) && device->read_only)
                return -EROFS;
        if (((io->offset | io->length) & block_mask) != 0 || io->length == 0)
                return -EINVAL;
        if (io->offset > size || io->length > size - io->offset)
                return -EIO;
        return 0;
}

/* A callback answers with the full length or an error. Anything else must not pass for success. */
int perform_answer(const struct target_io *io, int result)
{
        if (result < 0)
                return result >= -ERRNO_MAX ? result : -EIO;
        if (!carries_data(io->op))
                return 0;
        return (uint32_t)result == io->length ? result : -EIO;
}

static bool flushes(const struct target_io *io)
{
        return io->op == IO_FLUSH || ((io->flags & IO_FUA) && changes_data(io->op));
}

static int flush_co(const struct target *target, struct target_io *io, const struct durability *durability)
{
        int r = perform_answer(&(struct target_io){.op = IO_FLUSH}, target->flush(io));

        return durability_answer(durability, io->op, r, result_is_lossy(IO_FLUSH, 0, r));
}

/* Not inlined: its request on the stack would cost every other one the stack protector's checks. */
__attribute__((noinline)) static int perform_flushing_co(
        const struct target *target, struct target_io *io, const struct durability *durability, callback call)
{
        bool native = io->op == IO_WRITE && (target->desc->flags & TARGET_NATIVE_FUA);
        int result, r;

        if (durability_is_lost(durability))
                return -EIO;
        if (io->op == IO_FLUSH)
                return flush_co(target, io, durability);
        result = perform_answer(io, call(io));
        if (native)
                return durability_answer(
                        durability, io->op, result, result_is_lossy(io->op, io->flags, result));
        if (result < 0 || !target->flush)
                return result;
        r = flush_co(target, io, durability);
        return r < 0 ? r : result;
}

int perform_co(struct target_io *io, const struct durability *durability)
{
        const struct target_device *device = io->queue->device;
        const struct target *target = device->target;
        callback call = callback_of(target, io->op);
        int r;

        if (!call)
                return -EOPNOTSUPP;
        r = check(device, io);
        if (r < 0)
                return r;
        if (__builtin_expect(flushes(io), 0))
                return perform_flushing_co(target, io, durability, call);
        return perform_answer(io, call(io));
}
