/* SPDX-License-Identifier: MIT */
/* What a coroutine of the background waits for, so that it can be asked to stop.
 *
 * A scope is one such coroutine together with those that it has fanned out to (co.scope). Requests have none:
 * they are never asked to stop, and what they wait for is not listed. On the thread of the queue. */
#pragma once

#include "targets/worker/io/io_loop.h"

/* One wait that can be ended early; on the stack of the coroutine that waits. */
struct scope_wait {
        struct scope_wait *previous, *next;
        struct co_scope *scope; /* NULL: it is not listed */
        /* Make the wait end. Return false: not now, ask again in the next round. */
        bool (*cancel)(struct io_loop *loop, struct scope_wait *wait);
};

struct co_scope {
        bool stopping; /* every wait that begins from here on is refused */
        struct scope_wait *first;
};

/* Return whether the coroutine that runs was asked to stop. In a coroutine of the loop. */
static inline bool scope_is_stopping(const struct io_loop *loop)
{
        const struct co_scope *scope = co_current(&loop->coroutines)->scope;

        return scope && scope->stopping;
}

/* List a wait of the coroutine that runs, which is about to suspend. */
static inline void scope_wait_begin(
        struct io_loop *loop, struct scope_wait *wait, bool (*cancel)(struct io_loop *, struct scope_wait *))
{
        struct co_scope *scope = co_current(&loop->coroutines)->scope;

        wait->scope = scope;
        if (__builtin_expect(!scope, 1))
                return;
        *wait = (struct scope_wait){.scope = scope, .next = scope->first, .cancel = cancel};
        if (scope->first)
                scope->first->previous = wait;
        scope->first = wait;
}

/* Take it from the list, if it is there. */
static inline void scope_wait_end(struct scope_wait *wait)
{
        if (__builtin_expect(!wait->scope, 1))
                return;
        if (wait->next)
                wait->next->previous = wait->previous;
        if (wait->previous)
                wait->previous->next = wait->next;
        else
                wait->scope->first = wait->next;
        wait->scope = NULL;
}

/* Ask a scope to stop: cancel each of its waits once. Return false: some could not be cancelled yet, call
 * again in the next round. */
bool scope_stop(struct io_loop *loop, struct co_scope *scope);
