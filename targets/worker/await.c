/* The await_*() functions of target.h: each suspends its coroutine until io_uring is done.
 *
 * Short transfers, EINTR and EAGAIN end here. A kernel that says EAGAIN has run out of something for a
 * moment: the operation is repeated on a kernel thread, which may sleep for it, and from the second time on
 * after a pause. */
#include "targets/worker/await.h"

#include <string.h>

enum {
        RETRIES_MAX = 16,        /* with the pauses: some ten seconds */
        PAUSE_FIRST = 1000,      /* microseconds */
        PAUSE_LONGEST = 1000000, /* microseconds */
};

struct io_uring_sqe *await_sqe(struct io_loop *loop)
{
        struct io_uring_sqe *sqe;

        while (!(sqe = io_loop_sqe(loop))) {
                struct co *co = co_current(&loop->coroutines);

                co_list_append(&loop->starved, co);
                co_suspend(co);
        }
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
        (void)await_operation(loop, sqe);
}

/* How often in a row an operation had to be repeated. */
struct retry {
        unsigned count;
};

/* True when `result` asks for the same operation again; waits as long as that takes. */
static bool retry_wanted(struct io_loop *loop, struct retry *retry, int result)
{
        if (__builtin_expect(result != -EAGAIN && result != -EINTR, 1))
                return false;
        if (retry->count == RETRIES_MAX)
                return false;
        if (retry->count > 0) {
                unsigned pause = PAUSE_FIRST << (retry->count - 1);

                await_pause(loop, retry->count > 10 || pause > PAUSE_LONGEST ? PAUSE_LONGEST : pause);
        }
        retry->count++;
        return true;
}

static int await_on_file(struct io_loop *loop, struct io_uring_sqe *sqe, const struct retry *retry)
{
        sqe->flags |= IOSQE_FIXED_FILE | (retry->count > 0 ? IOSQE_ASYNC : 0);
        return await_operation(loop, sqe);
}

/* What is left of a read or write. */
struct transfer {
        struct target_io *io;
        unsigned file;
        char *data;
        uint32_t length;
        uint64_t offset;
        int rw_flags;
        bool writes;
};

static int await_transfer(const struct transfer *transfer)
{
        struct io_loop *loop = io_loop_of(transfer->io->queue);
        int file = (int)(IO_LOOP_FIRST_FILE + transfer->file);
        struct retry retry = {};
        uint32_t done = 0;

        assert(transfer->file < transfer->io->queue->device->file_count);
        while (done < transfer->length) {
                struct io_uring_sqe *sqe = await_sqe(loop);
                uint32_t left = transfer->length - done;
                int r;

                if (transfer->writes)
                        io_uring_prep_write(sqe, file, transfer->data + done, left, transfer->offset + done);
                else
                        io_uring_prep_read(sqe, file, transfer->data + done, left, transfer->offset + done);
                sqe->rw_flags = transfer->rw_flags;
                r = await_on_file(loop, sqe, &retry);
                if (retry_wanted(loop, &retry, r))
                        continue;
                /* Direct I/O cannot go on in the middle of a block: the backing store ends there. */
                if (r == -EINVAL && done > 0 && !transfer->writes)
                        return -EIO;
                if (r < 0)
                        return r == -EAGAIN || r == -EINTR ? -EIO : r;
                if (r == 0)
                        return transfer->writes ? -ENOSPC : -EIO;
                done += (uint32_t)r;
                retry.count = 0;
        }
        return (int)done;
}

int await_read(struct target_io *io, unsigned file, void *data, uint32_t length, uint64_t offset)
{
        return await_transfer(
                &(struct transfer){.io = io, .file = file, .data = data, .length = length, .offset = offset});
}

int await_write(
        struct target_io *io, unsigned file, const void *data, uint32_t length, uint64_t offset, int rw_flags)
{
        return await_transfer(&(struct transfer){
                .io = io,
                .file = file,
                .data = (char *)(uintptr_t)data, /* only read from */
                .length = length,
                .offset = offset,
                .rw_flags = rw_flags,
                .writes = true,
        });
}

int await_fdatasync(struct target_io *io, unsigned file)
{
        struct io_loop *loop = io_loop_of(io->queue);
        struct retry retry = {};
        int r;

        assert(file < io->queue->device->file_count);
        do {
                struct io_uring_sqe *sqe = await_sqe(loop);

                io_uring_prep_fsync(sqe, (int)(IO_LOOP_FIRST_FILE + file), IORING_FSYNC_DATASYNC);
                r = await_on_file(loop, sqe, &retry);
        } while (retry_wanted(loop, &retry, r));
        return r;
}

int await_fallocate(struct target_io *io, unsigned file, int mode, uint64_t offset, uint64_t length)
{
        struct io_loop *loop = io_loop_of(io->queue);
        struct retry retry = {};
        int r;

        assert(file < io->queue->device->file_count);
        do {
                struct io_uring_sqe *sqe = await_sqe(loop);

                io_uring_prep_fallocate(
                        sqe, (int)(IO_LOOP_FIRST_FILE + file), mode, (off_t)offset, (off_t)length);
                r = await_on_file(loop, sqe, &retry);
        } while (retry_wanted(loop, &retry, r));
        return r;
}
