/* SPDX-License-Identifier: MIT */
/* The loop target: a regular file or a block device, or a part of one.
 *
 * A write is answered when the kernel holds it (the page cache, or the disk with direct I/O), which survives
 * the death of this process. Ranges are zeroed by the best method that the backing store has. A method that
 * the store does not support is not tried again. The last resort is to write zeroes. */
#include "targets/loop/loop.h"
#include "targets/loop/loop_desc.h"
#include "targets/scrub/scrub.h"

#include <errno.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/uio.h>

enum zeroing {
        ZEROING_PUNCH = 1 << 0, /* gives the blocks back */
        ZEROING_RANGE = 1 << 1, /* keeps them allocated */
};

static int loop_read(struct target_io *io)
{
        const struct loop_device *loop = io->queue->device->state;

        return await_read(io, LOOP_FILE, 0, io->length, loop->offset + io->offset);
}

static int loop_write(struct target_io *io)
{
        const struct loop_device *loop = io->queue->device->state;

        return await_write(
                io, LOOP_FILE, 0, io->length, loop->offset + io->offset, io->flags & IO_FUA ? RWF_DSYNC : 0);
}

static int loop_flush(struct target_io *io)
{
        return await_fdatasync(io, LOOP_FILE);
}

/* The block layer drops cached pages of the range for the exclusive opener of the disk, and fails with EBUSY
 * for all others where pages are dirty (truncate_bdev_range(), block/bdev.c). The claim of a disk is the kept
 * descriptor's. It may also be that of another disk of ours on the same device: then the pages have to be
 * clean first. */
static int fallocate_range(struct target_io *io, int mode)
{
        const struct target_device *device = io->queue->device;
        const struct loop_device *loop = device->state;
        unsigned file = device->store.claimed ? LOOP_KEPT : LOOP_FILE;
        int r = await_fallocate(io, file, mode, loop->offset + io->offset, io->length);

        if (r != -EBUSY)
                return r;
        r = await_fdatasync(io, LOOP_FILE);
        return r < 0 ? r : await_fallocate(io, file, mode, loop->offset + io->offset, io->length);
}

/* One way to zero a range: -EOPNOTSUPP when the backing store does not have it. */
static int zero_by(struct target_io *io, enum zeroing means)
{
        struct loop_device *loop = io->queue->device->state;
        int mode =
                FALLOC_FL_KEEP_SIZE | (means == ZEROING_PUNCH ? FALLOC_FL_PUNCH_HOLE : FALLOC_FL_ZERO_RANGE);
        int r;

        if (atomic_load_explicit(&loop->refused, memory_order_relaxed) & means)
                return -EOPNOTSUPP;
        r = fallocate_range(io, mode);
        if (r == -EOPNOTSUPP)
                atomic_fetch_or_explicit(&loop->refused, means, memory_order_relaxed);
        return r;
}

static int write_real_zeroes(struct target_io *io)
{
        const struct loop_device *loop = io->queue->device->state;

        for (uint32_t done = 0, size; done < io->length; done += size) {
                int r;

                size = io->length - done < LOOP_ZEROES_SIZE ? io->length - done : LOOP_ZEROES_SIZE;
                r = await_write_memory(
                        io, LOOP_FILE, loop->zeroes, size, loop->offset + io->offset + done, 0);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int loop_write_zeroes(struct target_io *io)
{
        int r = -EOPNOTSUPP;

        if (!(io->flags & IO_NOUNMAP))
                r = zero_by(io, ZEROING_PUNCH);
        if (r == -EOPNOTSUPP)
                r = zero_by(io, ZEROING_RANGE);
        return r == -EOPNOTSUPP ? write_real_zeroes(io) : r;
}

static int loop_discard(struct target_io *io)
{
        return zero_by(io, ZEROING_PUNCH);
}

static int loop_scan(struct target_action *action, struct target_queue *queue, uint64_t offset,
        uint32_t length, void *memory)
{
        const struct loop_device *loop = queue->device->state;

        return await_action_read(action, queue, LOOP_FILE, memory, length, loop->offset + offset);
}

static void loop_close(struct target_device *device)
{
        struct loop_device *loop = device->state;

        if (loop->zeroes)
                (void)munmap(loop->zeroes, LOOP_ZEROES_SIZE);
        loop->zeroes = NULL;
}

const struct target loop_target = {
        .desc = &loop_desc,
        .device_size = sizeof(struct loop_device),
        .open = loop_open,
        .close = loop_close,
        .measure = loop_measure,
        .read = loop_read,
        .write = loop_write,
        .flush = loop_flush,
        .discard = loop_discard,
        .write_zeroes = loop_write_zeroes,
        .act = scrub_act,
        .scan = loop_scan,
};
