/* SPDX-License-Identifier: MIT */
/* await_watched(): a request whose suspensions are seen. */
#include "targets/worker/wait/wait_room_internal.h"

#include <errno.h>

static void run_child(void *argument)
{
        struct target_child *child = argument;

        child->result = child->run(child->argument);
}

int await_watched(struct target_queue *queue, struct target_child *child,
        void (*moment)(void *argument, bool resumed), void *argument)
{
        const struct co_watcher watcher = {.moment = moment, .argument = argument};
        struct io_loop *loop = io_loop_of(queue);
        struct wait_room *room = loop->waits;
        int r;

        if (!room || room->children_free == 0)
                return -EAGAIN;
        room->children_free--;
        r = co_watch(&loop->coroutines, run_child, child, &watcher);
        room->children_free++;
        return r < 0 ? -EAGAIN : 0;
}
