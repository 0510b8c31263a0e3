/* SPDX-License-Identifier: MIT */
/* Lets the queues of a worker leave. */
#include "targets/worker/queue/queue_leave.h"
#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <sys/eventfd.h>

int leave_call_open(struct leave_call *call, int news)
{
        call->news = news;
        call->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE); /* it blocks: the rings wait for it */
        return call->fd < 0 ? -errno : 0;
}

void leave_call_close(struct leave_call *call)
{
        call->fd = close_fd(call->fd);
}

void leave_call_send(const struct leave_call *call, unsigned queues)
{
        (void)eventfd_write(call->fd, queues); /* far from full: neither fails nor blocks */
}

int queue_leave_open(struct queue_leave *leave, struct io_loop *loop, struct leave_call *call)
{
        unsigned place = io_loop_leave_place(loop);

        if (!call)
                return 0;
        *leave = (struct queue_leave){.call = call, .file = call->fd};
        if (!(loop->file_flags & IOSQE_FIXED_FILE))
                return 0;
        leave->file = (int)place;
        return io_ring_set_file(&loop->ring, place, call->fd);
}

void queue_leave_await(struct queue_leave *leave, struct io_loop *loop)
{
        struct io_uring_sqe *sqe = leave->call ? io_loop_sqe(loop) : NULL;

        if (!sqe)
                return;
        io_uring_prep_read(sqe, leave->file, &leave->counter, sizeof(leave->counter), 0);
        sqe->flags |= loop->file_flags;
        io_uring_sqe_set_data64(sqe, USER_DATA_LEAVE);
}

void queue_leave_called(struct queue_leave *leave, struct io_loop *loop, int result)
{
        leave->wanted = leave->wanted || result == (int)sizeof(leave->counter);
        if (result == -EINTR || result == -EAGAIN)
                queue_leave_await(leave, loop);
}

void queue_leave_report(struct queue_leave *leave)
{
        if (leave->reported)
                return;
        leave->reported = true;
        atomic_fetch_add(&leave->call->left, 1);
        (void)eventfd_write(leave->call->news, 1); /* fails only where the main thread has news already */
}
