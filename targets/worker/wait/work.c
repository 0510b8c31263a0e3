/* SPDX-License-Identifier: MIT */
/* await_work(), and the coroutine of each queue that takes what the threads have done. */
#include "targets/worker/io/await.h"
#include "targets/worker/wait/wait_room_internal.h"

#include <sys/eventfd.h>

struct work_wait {
        struct scope_wait wait; /* first: cancel() gets this */
        struct work_item item;
        struct co *co;
};

static bool cancel(struct io_loop *loop, struct scope_wait *wait)
{
        struct work_wait *self = (struct work_wait *)wait;

        if (work_port_withdraw(self->item.port, &self->item)) {
                self->item.result = -ECANCELED;
                co_list_append(&loop->ready, self->co);
        }
        return true;
}

int await_work(struct target_queue *queue, int (*run)(void *argument), void *argument)
{
        struct io_loop *loop = io_loop_of(queue);
        struct work_wait self = {
                .item = {.run = run, .argument = argument},
                  .co = co_current(&loop->coroutines)
        };

        if (!loop->waits || !loop->waits->work)
                return -EACCES;
        if (scope_is_stopping(loop))
                return -ECANCELED;
        work_port_submit(loop->waits->work, &self.item);
        scope_wait_begin(loop, &self.wait, cancel);
        co_suspend(self.co);
        scope_wait_end(&self.wait);
        return self.item.result;
}

static void wake_done(struct wait_room *room)
{
        struct work_item *next;

        for (struct work_item *item = work_port_take(room->work); item; item = next) {
                struct work_wait *self =
                        (struct work_wait *)((char *)item - offsetof(struct work_wait, item));

                next = item->next;
                co_list_append(&room->loop->ready, self->co);
        }
}

/* After an error of the read nothing reports what the threads have done: the queue cannot go on. None is
 * known: the descriptor is ours, and stays open. */
static void work_co(void *argument)
{
        struct wait_room *room = argument;
        struct io_loop *loop = room->loop;
        int r = 0;

        while (!room->work_ends && (r >= 0 || r == -EINTR || r == -EAGAIN)) {
                struct io_uring_sqe *sqe = await_sqe(loop);

                io_uring_prep_read(sqe, room->work_file, &room->work_news, sizeof(room->work_news), 0);
                sqe->flags |= loop->file_flags;
                r = await_operation(loop, sqe);
                wake_done(room);
        }
        if (!room->work_ends)
                *room->failure = r;
        room->work_runs = false;
        loop->residents--;
}

int wait_work_begin(struct wait_room *room)
{
        room->work_runs = true;
        return wait_room_begin(room, work_co, room);
}

void wait_work_end(struct wait_room *room)
{
        room->work_ends = true;
        (void)eventfd_write(work_port_fd(room->work), 1);
}
