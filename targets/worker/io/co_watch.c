/* SPDX-License-Identifier: MIT */
/* Watches a coroutine, without anything in the code that coroutines run in common.
 *
 * A coroutine that suspends switches to pool->outside, and the thread enters it by its own context. So what is watched runs on the
 * stack of an idle coroutine, and its own stack lies in between: while it runs, pool->outside leads back to here; while it is
 * suspended, its context does. Both are set again at each switch. co_current() is the watched coroutine all the while. */
#include "targets/worker/io/co.h"
#include "targets/worker/io/co_sanitizer.h"

struct watch {
        void (*entry)(void *argument);
        void *argument;
        bool ended;
};

/* Where the thread goes on when the coroutine suspends. */
struct outside {
        struct co_context context;
        const void *stack; /* for the sanitizer */
        size_t size;
};

static void run(void *argument)
{
        struct watch *watch = argument;

        watch->entry(watch->argument);
        watch->ended = true;
}

static struct outside outside_of(const struct co_pool *pool)
{
        return (struct outside){pool->outside, pool->outside_stack, pool->outside_size};
}

static void set_outside(struct co_pool *pool, const struct outside *outside)
{
        pool->outside = outside->context;
        pool->outside_stack = outside->stack;
        pool->outside_size = outside->size;
}

/* Into what is watched, until it suspends or ends. */
static void enter(struct co_pool *pool, const struct co *lender, struct co_context *inside)
{
        void *fake_stack = NULL;

        __sanitizer_start_switch_fiber(&fake_stack, lender->stack, lender->stack_size);
        co_context_switch(&pool->outside, inside);
        __sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
}

/* Out of the coroutine, until the thread enters it again. Return where it comes from then. */
static struct outside leave(struct co_pool *pool, struct co *co, const struct outside *outside)
{
        void *fake_stack = NULL;

        set_outside(pool, outside);
        __sanitizer_start_switch_fiber(&fake_stack, outside->stack, outside->size);
        co_context_switch(&co->context, &pool->outside);
        __sanitizer_finish_switch_fiber(fake_stack, &pool->outside_stack, &pool->outside_size);
        return outside_of(pool);
}

int co_watch(
        struct co_pool *pool, void (*entry)(void *argument), void *argument, const struct co_watcher *watcher)
{
        struct watch watch = {.entry = entry, .argument = argument};
        struct outside outside = outside_of(pool);
        struct co *co = co_current(pool), *lender;
        int r = co_prepare(pool, run, &watch, &lender);

        if (r < 0)
                return r;
        enter(pool, lender, &lender->context);
        while (!watch.ended) {
                struct co_context inside = co->context;

                watcher->moment(watcher->argument, false);
                outside = leave(pool, co, &outside);
                watcher->moment(watcher->argument, true);
                enter(pool, lender, &inside);
        }
        set_outside(pool, &outside);
        return 0;
}
