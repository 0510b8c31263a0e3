/* SPDX-License-Identifier: MIT */
/* Stackful coroutines: a request's code runs on a stack of its own and may stop in the middle of it.
 *
 * A pool belongs to one thread, and so do its coroutines: none is ever resumed elsewhere. Idle stacks are
 * handed out last in, first out, so that only as many are ever touched as there were requests at one time; a
 * stack that was never used is address space and nothing else. Below each stack lies a page that faults, so
 * that an overflow is a crash (which recovery survives) and not a corrupted neighbour. */
#pragma once

#include "targets/worker/io/co_switch.h"

#include <stdbool.h>
#include <stddef.h>

struct co_pool;
struct co_scope;

/* One coroutine. Lives at the top of its own stack. */
struct co {
        struct co_context context; /* while it is not running */
        struct co_pool *pool;
        struct co *next; /* in the list of idle ones, or in a co_list */
        void (*entry)(void *argument);
        void *argument;
        struct co_scope *scope; /* of targets/worker/wait/scope.h; NULL, also while it is idle: none */
        void *stack;            /* its bottom, for the sanitizer */
        size_t stack_size;
        void *fake_stack; /* the sanitizer's */
        unsigned valgrind_id;
};

struct co_pool {
        char *area; /* all stacks, each with its guard page */
        size_t area_size, stride;
        bool writable; /* but for guard pages; else inaccessible but for the opened stacks */
        bool guarded; /* there are markers in front of all stacks; else a page is guarded as its stack is opened */
        unsigned count;  /* stacks there are */
        unsigned opened; /* stacks that were used at least once: the first ones */
        unsigned busy;   /* coroutines that have begun and not ended */
        struct co *idle;
        struct co *current;        /* the one that runs, or NULL */
        struct co_context outside; /* the thread itself, while `current` runs */
        const void *outside_stack; /* the thread's own stack, for the sanitizer */
        size_t outside_size;
        void *outside_fake_stack;
};

/* Coroutines in the order of arrival. */
struct co_list {
        struct co *first, *last;
};

enum {
#if defined(__SANITIZE_ADDRESS__)
        CO_STACK_SIZE = 256 * 1024, /* red zones around every local */
#else
        CO_STACK_SIZE = 64 * 1024,
#endif
        CO_COUNT_MAX = 1 << 16,
};

/* Reserve `count` stacks of `stack_size` bytes (a multiple of the page). Return 0, -EINVAL or -ENOMEM. */
int co_pool_init(struct co_pool *pool, size_t stack_size, unsigned count);
/* Free the stacks. No coroutine may be busy. A zero-initialised pool is fine. */
void co_pool_destroy(struct co_pool *pool);

/* Run entry(argument) on a coroutine until it ends or suspends. Not from inside a coroutine of this pool.
 * Return 0; -EAGAIN: all are busy; -ENOMEM: the kernel has no memory for one more stack. */
int co_start(struct co_pool *pool, void (*entry)(void *argument), void *argument);
/* Prepare a coroutine that runs entry(argument) from its first co_resume() on. Also from inside a coroutine. Results as
 * of co_start(). */
int co_prepare(struct co_pool *pool, void (*entry)(void *argument), void *argument, struct co **ret);
/* Continue a suspended coroutine until it ends or suspends; or begin a prepared one. Not from inside a
 * coroutine of its pool. */
void co_resume(struct co *co);
/* Suspend the running coroutine: its starter or resumer continues. Return when it is resumed. */
void co_suspend(struct co *co);

/* What is called when a watched coroutine suspends, and when it is about to continue (resumed): on a stack of its own coroutine,
 * which must not suspend there. */
struct co_watcher {
        void (*moment)(void *argument, bool resumed);
        void *argument;
};

/* Run entry(argument) in the coroutine that runs, with a watcher. It suspends as without. It takes the stack of an idle coroutine;
 * coroutines that are not watched do nothing for it. Return 0 after the end of entry(); or, without a call of it, as
 * co_start(). */
int co_watch(struct co_pool *pool, void (*entry)(void *argument), void *argument,
        const struct co_watcher *watcher);

/* Return the running coroutine, or NULL outside of one. */
static inline struct co *co_current(const struct co_pool *pool)
{
        return pool->current;
}

static inline void co_list_append(struct co_list *list, struct co *co)
{
        co->next = NULL;
        if (list->last)
                list->last->next = co;
        else
                list->first = co;
        list->last = co;
}

static inline struct co *co_list_take(struct co_list *list)
{
        struct co *co = list->first;

        if (co) {
                list->first = co->next;
                if (!list->first)
                        list->last = NULL;
        }
        return co;
}

/* Move all of `from` to the end of `to`. */
static inline void co_list_splice(struct co_list *to, struct co_list *from)
{
        if (!from->first)
                return;
        if (to->last)
                to->last->next = from->first;
        else
                to->first = from->first;
        to->last = from->last;
        *from = (struct co_list){};
}
