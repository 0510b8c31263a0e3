/* SPDX-License-Identifier: MIT */
/* Coroutines that wait for a lock, on their own stacks. On the thread of the queue. */
#pragma once

#include "targets/target_locks.h"
#include "targets/worker/io/io_loop.h"

struct co_waiter {
        struct co_waiter *next;
        struct co *co;
        bool writes; /* of a read-write lock */
};

static inline void co_waiters_append(struct co_waiters *waiters, struct co_waiter *waiter)
{
        waiter->next = NULL;
        if (waiters->last)
                waiters->last->next = waiter;
        else
                waiters->first = waiter;
        waiters->last = waiter;
}

static inline struct co_waiter *co_waiters_take(struct co_waiters *waiters)
{
        struct co_waiter *waiter = waiters->first;

        if (!waiter)
                return NULL;
        waiters->first = waiter->next;
        if (!waiters->first)
                waiters->last = NULL;
        return waiter;
}

static inline void co_waiters_remove(struct co_waiters *waiters, const struct co_waiter *waiter)
{
        struct co_waiter *before = NULL;

        for (struct co_waiter *each = waiters->first; each != waiter; each = each->next)
                before = each;
        if (before)
                before->next = waiter->next;
        else
                waiters->first = waiter->next;
        if (waiters->last == waiter)
                waiters->last = before;
}

/* Wait until the waiter, which is in a list, is woken. Suspends. */
static inline void co_waiters_wait_co(
        struct target_queue *queue, struct co_waiters *waiters, struct co_waiter *waiter)
{
        waiter->co = co_current(&io_loop_of(queue)->coroutines);
        co_waiters_append(waiters, waiter);
        co_suspend(waiter->co);
}

/* Let the coroutine of a waiter that is in no list any more continue, after all that are ready. */
static inline void co_waiter_wake(const struct co_waiter *waiter)
{
        struct co_pool *pool = waiter->co->pool;
        struct io_loop *loop = (struct io_loop *)((char *)pool - offsetof(struct io_loop, coroutines));

        co_list_append(&loop->ready, waiter->co);
}
