/* SPDX-License-Identifier: MIT */
/* The await_*() functions of target.h: each suspends its coroutine until io_uring is done.
 *
 * Short transfers, EINTR and EAGAIN end here. A kernel that returns EAGAIN has run out of something for a
 * moment: the operation is repeated on a kernel thread, which may sleep for it, and from the second time on
 * after a pause. */
#include "targets/worker/io/await.h"

#include <string.h>

enum {
        RETRIES_MAX = 16,        /* with the pauses: some ten seconds */
        PAUSE_FIRST = 1000,      /* microseconds */
        PAUSE_LONGEST = 1000000, /* microseconds */
};

__attribute__((cold, noinline)) static struct io_uring_sqe *await_sqe_slowly(struct io_loop *loop)
{
        struct io_uring_sqe *sqe;

        while (!(sqe = io_loop_sqe(loop))) {
                struct co *co = co_current(&loop->coroutines);

                co_list_append(&loop->starved, co);
                co_suspend(co);
        }
        return sqe;
}

struct io_uring_sqe *await_sqe(struct io_loop *loop)
{
        struct io_uring_sqe *sqe = io_ring_sqe(&loop->ring);

        if (__builtin_expect(!sqe, 0))
                return await_sqe_slowly(loop);
        io_ring_clear(sqe);
        return sqe;
}

int await_operation(struct io_loop *loop, struct io_uring_sqe *sqe)
{
        struct await await = {.co = co_current(&loop->coroutines)};

        io_uring_sqe_set_data64(sqe, user_data_await(&await));
        co_suspend(await.co);
        return await.result;
}

void await_pause(struct io_loop *loop, unsigned microseconds)
{
        struct __kernel_timespec time = {
                .tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000L};
        struct io_uring_sqe *sqe = await_sqe(loop);

        io_uring_prep_timeout(sqe, &time, 0, 0);
        sqe->flags |= loop->file_flags;
        (void)await_operation(loop, sqe);
}

__attribute__((cold, noinline)) static bool retry_again(struct io_loop *loop, struct retry *retry)
{
        if (retry->count == RETRIES_MAX)
                return false;
        if (retry->count > 0) {
                unsigned pause = PAUSE_FIRST << (retry->count - 1);

                await_pause(loop, retry->count > 10 || pause > PAUSE_LONGEST ? PAUSE_LONGEST : pause);
        }
        retry->count++;
        return true;
}

bool retry_wanted(struct io_loop *loop, struct retry *retry, int result)
{
        if (__builtin_expect(result != -EAGAIN && result != -EINTR, 1))
                return false;
        return retry_again(loop, retry);
}

/* The file of the entry: by its number in the loop. */
static inline int await_on_file(
        struct io_loop *loop, struct io_uring_sqe *sqe, unsigned file, const struct retry *retry)
{
        io_loop_set_file(loop, sqe, file);
        sqe->flags |= retry->count > 0 ? IOSQE_ASYNC : 0;
        return await_operation(loop, sqe);
}

/* What a short transfer, and the lack of one, mean. */
static inline int after_transfer(const struct transfer *transfer, uint32_t done, int result)
{
        /* Direct I/O cannot go on in the middle of a block: the backing store ends there. */
        if (result == -EINVAL && done > 0 && !transfer->writes)
                return -EIO;
        if (result < 0)
                return result == -EAGAIN || result == -EINTR ? -EIO : result;
        if (result == 0)
                return transfer->writes ? -ENOSPC : -EIO;
        return result;
}

static inline void prepare(struct io_uring_sqe *sqe, const struct transfer *transfer, uint32_t done)
{
        uint8_t operation = transfer->writes ? IORING_OP_WRITE : IORING_OP_READ;

        if (transfer->fixed)
                operation = transfer->writes ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
        *sqe = (struct io_uring_sqe){
                .opcode = operation,
                .off = transfer->offset + done,
                .addr = transfer->address + done,
                .len = transfer->length - done,
                .rw_flags = transfer->rw_flags,
                .buf_index = transfer->buffer,
        };
}

/* Inlined where requests pass, so that what is known there of the transfer need not go through memory. */
__attribute__((always_inline)) static inline int transfer_all(
        struct io_loop *loop, const struct transfer *transfer)
{
        struct retry retry = {};
        uint32_t done = 0;

        while (done < transfer->length) {
                struct io_uring_sqe *sqe = await_sqe(loop);
                int r;

                prepare(sqe, transfer, done);
                r = await_on_file(loop, sqe, transfer->file, &retry);
                if (retry_wanted(loop, &retry, r))
                        continue;
                r = after_transfer(transfer, done, r);
                if (r < 0)
                        return r;
                done += (uint32_t)r;
                retry.count = 0;
        }
        return (int)done;
}

int await_transfer(struct io_loop *loop, const struct transfer *transfer)
{
        return transfer_all(loop, transfer);
}

static unsigned number_of(const struct target_io *io, unsigned file)
{
        assert(file < io->queue->device->file_count);
        return IO_LOOP_FIRST_FILE + io->queue->first_file + file;
}

/* The data of a request: in our memory, or a registered buffer, whose addresses begin at 0. */
static struct transfer transfer_of_data(
        const struct target_io *io, unsigned file, uint32_t position, uint32_t length, uint64_t offset)
{
        assert(position <= io->length && length <= io->length - position);
        return (struct transfer){
                .file = number_of(io, file),
                .fixed = !io->data,
                .buffer = io->data ? 0 : io->tag,
                .address = (uintptr_t)io->data + io->data_position + position,
                .length = length,
                .offset = offset,
        };
}

int await_read(struct target_io *io, unsigned file, uint32_t position, uint32_t length, uint64_t offset)
{
        struct transfer transfer = transfer_of_data(io, file, position, length, offset);

        return transfer_all(io_loop_of(io->queue), &transfer);
}

int await_write(struct target_io *io, unsigned file, uint32_t position, uint32_t length, uint64_t offset,
        int rw_flags)
{
        struct transfer transfer = transfer_of_data(io, file, position, length, offset);

        transfer.writes = true;
        transfer.rw_flags = rw_flags;
        return transfer_all(io_loop_of(io->queue), &transfer);
}

int await_write_memory(struct target_io *io, unsigned file, const void *memory, uint32_t length,
        uint64_t offset, int rw_flags)
{
        return await_transfer(io_loop_of(io->queue), &(struct transfer){.file = number_of(io, file),
                                                             .address = (uintptr_t)memory,
                                                             .length = length,
                                                             .offset = offset,
                                                             .rw_flags = rw_flags,
                                                             .writes = true});
}

int await_fdatasync(struct target_io *io, unsigned file)
{
        struct io_loop *loop = io_loop_of(io->queue);
        unsigned number = number_of(io, file);
        struct retry retry = {};
        int r;

        do {
                struct io_uring_sqe *sqe = await_sqe(loop);

                io_uring_prep_fsync(sqe, -1, IORING_FSYNC_DATASYNC);
                r = await_on_file(loop, sqe, number, &retry);
        } while (retry_wanted(loop, &retry, r));
        return r;
}

int await_fallocate(struct target_io *io, unsigned file, int mode, uint64_t offset, uint64_t length)
{
        struct io_loop *loop = io_loop_of(io->queue);
        unsigned number = number_of(io, file);
        struct retry retry = {};
        int r;

        do {
                struct io_uring_sqe *sqe = await_sqe(loop);

                io_uring_prep_fallocate(sqe, -1, mode, (off_t)offset, (off_t)length);
                r = await_on_file(loop, sqe, number, &retry);
        } while (retry_wanted(loop, &retry, r));
        return r;
}
