/* SPDX-License-Identifier: MIT */
/* Waiting for descriptors, time and sockets: operations of the ring that can be cancelled. */
#include "targets/worker/io/await.h"
#include "targets/worker/wait/wait_room_internal.h"

#include <poll.h>
#include <sys/socket.h>

struct operation {
        struct scope_wait wait; /* first: cancel() gets this */
        struct await await;
};

/* Fill in an entry of which only the end counts. */
static void prepare_cancel(struct io_loop *loop, struct io_uring_sqe *sqe, uint64_t user_data)
{
        *sqe = (struct io_uring_sqe){.opcode = IORING_OP_ASYNC_CANCEL,
                .flags = loop->file_flags,
                .addr = user_data,
                .user_data = USER_DATA_NUDGE};
        loop->nudges++;
}

static bool cancel(struct io_loop *loop, struct scope_wait *wait)
{
        struct io_uring_sqe *sqe = io_loop_sqe(loop);

        if (!sqe)
                return false;
        prepare_cancel(loop, sqe, user_data_await(&((struct operation *)wait)->await));
        return true;
}

/* Wait for an operation that was filled into `sqe`, as await_operation(). */
static int await_cancellable(struct io_loop *loop, struct io_uring_sqe *sqe)
{
        struct operation self = {.await.co = co_current(&loop->coroutines)};

        io_uring_sqe_set_data64(sqe, user_data_await(&self.await));
        scope_wait_begin(loop, &self.wait, cancel);
        co_suspend(self.await.co);
        scope_wait_end(&self.wait);
        return self.await.result;
}

/* Set the file of a prepared entry. False: there is none. */
static bool set_file(const struct io_loop *loop, struct io_uring_sqe *sqe, unsigned file)
{
        const struct target_device *device = loop->queue.device;

        if (file < TARGET_QUEUE_FILE) {
                assert(file < device->file_count);
                io_loop_set_file(loop, sqe, IO_LOOP_FIRST_FILE + file);
                return true;
        }
        assert(file - TARGET_QUEUE_FILE < device->target->desc->waits.files);
        sqe->fd = loop->waits->files[file - TARGET_QUEUE_FILE];
        sqe->flags |= loop->file_flags;
        return sqe->fd >= 0;
}

/* Of a queue that reserves nothing, all operations that would ask for it fail with -EACCES. */
static unsigned generation(const struct io_loop *loop, unsigned file)
{
        assert(file < TARGET_QUEUE_FILE + TARGET_QUEUE_FILES_MAX);
        return loop->waits ? loop->waits->generations[file] : 0;
}

/* Whether an operation that began with `begun` may be handed to the kernel now. Return 0 or -errno. */
static int may_go_on(const struct io_loop *loop, unsigned file, unsigned begun)
{
        return scope_is_stopping(loop) || generation(loop, file) != begun ? -ECANCELED : 0;
}

/* Perform an operation on a file, for a call that began with generation `begun`. The file is looked up last:
 * for an entry another coroutine may have run, and put another file there. */
static int await_on_file(
        struct io_loop *loop, unsigned file, unsigned begun, const struct io_uring_sqe *prepared)
{
        struct io_uring_sqe *sqe = await_sqe(loop);
        int r = may_go_on(loop, file, begun);

        *sqe = *prepared;
        if (r >= 0 && !set_file(loop, sqe, file))
                r = -EBADF;
        if (r < 0) {
                io_ring_return_sqe(&loop->ring);
                return r;
        }
        return await_cancellable(loop, sqe);
}

static int await_events(struct io_loop *loop, unsigned file, unsigned begun, short events)
{
        struct io_uring_sqe sqe = {.opcode = IORING_OP_POLL_ADD};

        sqe.poll32_events = (uint16_t)events;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        sqe.poll32_events = sqe.poll32_events
                            << 16; /* its halves are swapped there (io_poll_parse_events()) */
#endif
        return await_on_file(loop, file, begun, &sqe);
}

int await_fd(struct target_queue *queue, unsigned file, short events)
{
        struct io_loop *loop = io_loop_of(queue);

        file = wait_room_file(queue, file);
        return await_events(loop, file, generation(loop, file), events);
}

int await_cancel(struct target_queue *queue, unsigned file)
{
        struct io_loop *loop = io_loop_of(queue);
        struct io_uring_sqe *sqe = await_sqe(loop);

        /* What is with the kernel, or in an entry before this one, ends by the entry. The rest sees the
         * counter. */
        file = wait_room_file(queue, file);
        if (loop->waits)
                loop->waits->generations[file]++;
        *sqe = (struct io_uring_sqe){.opcode = IORING_OP_ASYNC_CANCEL,
                .cancel_flags = IORING_ASYNC_CANCEL_FD | IORING_ASYNC_CANCEL_ALL};
        if (!set_file(loop, sqe, file)) {
                io_ring_return_sqe(&loop->ring);
                return 0;
        }
        return await_operation(loop, sqe);
}

int await_timeout(struct target_queue *queue, uint64_t nanoseconds)
{
        struct io_loop *loop = io_loop_of(queue);
        struct __kernel_timespec time = {.tv_sec = (int64_t)(nanoseconds / 1000000000),
                .tv_nsec = (long long)(nanoseconds % 1000000000)};
        struct io_uring_sqe *sqe;
        int r;

        if (scope_is_stopping(loop))
                return -ECANCELED;
        sqe = await_sqe(loop);
        io_uring_prep_timeout(sqe, &time, 0, 0);
        sqe->flags |= loop->file_flags;
        r = await_cancellable(loop, sqe);
        return r == -ETIME ? 0 : r;
}

/* ---- sockets ---- */

struct stream_part {
        uint8_t operation;
        short events; /* that come before it can go on, where the socket does not block */
        int flags;
        unsigned file, begun; /* the generation of the file */
        uintptr_t memory;
        uint32_t length;
};

/* One operation, which may be short. */
static int await_part(struct io_loop *loop, const struct stream_part *part)
{
        const struct io_uring_sqe sqe = {.opcode = part->operation,
                .addr = part->memory,
                .len = part->length,
                .msg_flags = (uint32_t)part->flags};
        int r;

        for (;;) {
                r = await_on_file(loop, part->file, part->begun, &sqe);
                if (r == -EAGAIN)
                        r = await_events(loop, part->file, part->begun, part->events);
                else if (r != -EINTR)
                        return r;
                if (r < 0 && r != -EINTR)
                        return r;
        }
}

/* The whole, or where the stream ends: of one file, so that no message is of two connections. Return bytes or
 * -errno. */
static int await_stream(struct target_queue *queue, struct stream_part part)
{
        struct io_loop *loop = io_loop_of(queue);
        uint32_t length = part.length;

        part.file = wait_room_file(queue, part.file);
        part.begun = generation(loop, part.file);
        while (part.length > 0) {
                int r = await_part(loop, &part);

                if (r < 0)
                        return r;
                if (r == 0)
                        break;
                part.memory += (uint32_t)r;
                part.length -= (uint32_t)r;
        }
        return (int)(length - part.length);
}

int await_send(struct target_queue *queue, unsigned file, const void *memory, uint32_t length)
{
        assert(length <= INT32_MAX);
        return await_stream(queue, (struct stream_part){.operation = IORING_OP_SEND,
                                           .events = POLLOUT,
                                           .flags = MSG_NOSIGNAL | MSG_WAITALL,
                                           .file = file,
                                           .memory = (uintptr_t)memory,
                                           .length = length});
}

int await_recv(struct target_queue *queue, unsigned file, void *memory, uint32_t length)
{
        int r;

        assert(length <= INT32_MAX);
        r = await_stream(queue, (struct stream_part){.operation = IORING_OP_RECV,
                                        .events = POLLIN,
                                        .flags = MSG_WAITALL,
                                        .file = file,
                                        .memory = (uintptr_t)memory,
                                        .length = length});
        return r > 0 && (uint32_t)r < length ? -ECONNRESET : r;
}

int await_recv_some(struct target_queue *queue, unsigned file, void *memory, uint32_t length)
{
        struct io_loop *loop = io_loop_of(queue);

        assert(length > 0 && length <= INT32_MAX);
        file = wait_room_file(queue, file);
        return await_part(loop, &(struct stream_part){.operation = IORING_OP_RECV,
                                        .events = POLLIN,
                                        .file = file,
                                        .begun = generation(loop, file),
                                        .memory = (uintptr_t)memory,
                                        .length = length});
}
