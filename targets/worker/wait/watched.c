/* SPDX-License-Identifier: MIT */
/* await_watched(): a request whose suspensions are seen. */
#include "targets/worker/wait/wait_room_internal.h"

static void run_child(void *argument)
{
        struct target_child *child = argument;

        child->result = child->run(child->argument);
}

/* Its own stack keeps this out of the proof of fan_out.c: the parts above that wait here may hold all others, and no call waits for a
 * second one, since a tree has one target that watches. */
int await_watched(struct target_queue *queue, struct target_child *child,
        void (*moment)(void *argument, bool resumed), void *argument)
{
        const struct co_watcher watcher = {.moment = moment, .argument = argument};
        struct io_loop *loop = io_loop_of(queue);
        struct wait_room *room = loop->waits;
        bool is_child = room->children_free > 0;
        int r;

        assert(queue->device->target->desc->waits.watched);
        if (is_child)
                room->children_free--;
        else
                await_mutex(queue, &room->watched);
        r = co_watch(&loop->coroutines, run_child, child, &watcher);
        if (is_child)
                room->children_free++;
        else
                co_mutex_unlock(&room->watched);
        return r;
}
