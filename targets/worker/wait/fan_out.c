/* SPDX-License-Identifier: MIT */
/* await_all(): parts of a request on coroutines of their own.
 *
 * Why it ends, whatever fans out at the same time: a call waits for nothing but its own children. One that
 * finds no stack waits for a child of its own that has one, and if it has none such, it runs the next one
 * itself. So by induction from the innermost calls each ends, if run() does. */
#include "targets/worker/wait/wait_room_internal.h"

struct fan_out {
        struct io_loop *loop;
        struct co *parent; /* waits until `running` is no more than `enough`; NULL: it does not wait */
        unsigned running, enough;
        int error; /* the first */
};

static void perform(struct fan_out *fan, struct target_child *child)
{
        child->result = child->run(child->argument);
        if (child->result < 0 && fan->error == 0)
                fan->error = child->result;
}

static void child_co(void *argument)
{
        struct target_child *child = argument;
        struct fan_out *fan = child->fan;
        struct io_loop *loop = fan->loop;
        struct co *co = co_current(&loop->coroutines);

        perform(fan, child);
        loop->residents -= co->scope != NULL;
        co->scope = NULL;
        loop->waits->children_free++; /* the stack is free before any other coroutine runs */
        fan->running--;
        if (fan->parent && fan->running <= fan->enough) {
                co_list_append(&loop->ready, fan->parent);
                fan->parent = NULL;
        }
}

/* False: there is no stack for it now. */
static bool start(struct fan_out *fan, struct target_child *child)
{
        struct wait_room *room = fan->loop->waits;
        struct co *co;

        if (!room || room->children_free == 0 || co_prepare(&fan->loop->coroutines, child_co, child, &co) < 0)
                return false;
        child->fan = fan;
        co->scope = co_current(&fan->loop->coroutines)->scope;
        fan->loop->residents += co->scope != NULL;
        room->children_free--;
        fan->running++;
        co_list_append(&fan->loop->ready, co);
        return true;
}

static void wait_until(struct fan_out *fan, unsigned enough)
{
        if (fan->running <= enough)
                return;
        fan->enough = enough;
        fan->parent = co_current(&fan->loop->coroutines);
        co_suspend(fan->parent);
}

int await_all(struct target_queue *queue, struct target_child *children, unsigned count)
{
        struct fan_out fan = {.loop = io_loop_of(queue)};
        unsigned next = 1;

        if (count == 0)
                return 0;
        while (next < count && start(&fan, &children[next]))
                next++;
        perform(&fan, &children[0]);
        while (next < count)
                if (start(&fan, &children[next]))
                        next++;
                else if (fan.running > 0)
                        wait_until(&fan, fan.running - 1);
                else
                        perform(&fan, &children[next++]);
        wait_until(&fan, 0);
        return fan.error;
}
