/* SPDX-License-Identifier: MIT */
/* Stackful coroutines, and the pool of their stacks.
 *
 * A coroutine that has ended is not torn down: it waits inside body() for its next entry, so that starting
 * one is a single switch. AddressSanitizer must know of every change of stacks, valgrind of where stacks
 * are; the hooks vanish without them.
 *
 * A stack is opened with its first use, and a worker that takes over under load opens all of them at once: so
 * that has to be cheap. Where the kernel has guard markers (6.13) the whole area is one writable mapping, and
 * a stack costs one marker. Elsewhere the area is inaccessible, and mprotect() cuts a stack out of it, which
 * makes two mappings of one under the lock that all page faults of the process need. */
#include "targets/worker/io/co.h"
#include "targets/worker/io/co_sanitizer.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h> /* a few instructions that do nothing anywhere else */
#else
#define VALGRIND_STACK_REGISTER(bottom, top) ((void)(bottom), (void)(top), 0U)
#define VALGRIND_STACK_DEREGISTER(id) ((void)(id))
#endif

/* <asm-generic/mman-common.h> of 6.13; the number is the same for every CPU that this program runs on. */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

/* Of so few stacks, those of a queue of the default depth and some for other work, each can be a mapping of its own from its
 * first use on: 64 queues have a third of what a process may have. That spares each recovery the markers (bench/RESULTS.md). */
enum { MAPPINGS_MAX = 160 };

/* All stacks end at the same place within a page. Beginning each a little lower than the one before spreads
 * their busiest lines over the sets of the first-level cache. */
enum { COLOUR_STEP = 128, COLOURS = 16 };

static size_t page_size(void)
{
        return (size_t)sysconf(_SC_PAGESIZE);
}

/* A machine that does not overcommit may refuse to promise all stacks at once: then they are asked for one by
 * one.
 */
static char *map_writable(size_t size)
{
        char *area = mmap(NULL, size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

        return area == MAP_FAILED ? NULL : area;
}

static char *map_inaccessible(size_t size)
{
        char *area =
                mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

        return area == MAP_FAILED ? NULL : area;
}

/* Markers cost no mapping each, but memory that is locked takes none (ublkd/base/ram.h). So many stacks get theirs here,
 * before that, if the kernel has markers. */
static bool install_markers(char *area, size_t stride, unsigned count)
{
        for (unsigned i = 0; i < count; i++)
                if (madvise(area + i * stride, page_size(), MADV_GUARD_INSTALL) < 0)
                        return false;
        return true;
}

int co_pool_init(struct co_pool *pool, size_t stack_size, unsigned count)
{
        size_t page = page_size(), size;
        bool writable = true;
        char *area;

        if (stack_size < 4 * page || stack_size % page != 0 || stack_size > SIZE_MAX / 2 / CO_COUNT_MAX)
                return -EINVAL;
        if (count == 0 || count > CO_COUNT_MAX)
                return -EINVAL;
        size = (stack_size + page) * count;
        area = map_writable(size);
        if (!area) {
                writable = false;
                area = map_inaccessible(size);
        }
        if (!area)
                return -ENOMEM;
        /* A huge page would make one touched stack cost as much as thirty. Kernels without them return EINVAL.
         */
        (void)madvise(area, size, MADV_NOHUGEPAGE);
        *pool = (struct co_pool){
                .area = area,
                .area_size = size,
                .stride = stack_size + page,
                .writable = writable,
                .guarded =
                        writable && count > MAPPINGS_MAX && install_markers(area, stack_size + page, count),
                .count = count,
        };
        return 0;
}

/* Into the coroutine, and back out of it when it suspends. */
static void enter(struct co *co)
{
        struct co_pool *pool = co->pool;

        assert(!pool->current);
        pool->current = co;
        __sanitizer_start_switch_fiber(&pool->outside_fake_stack, co->stack, co->stack_size);
        co_context_switch(&pool->outside, &co->context);
        __sanitizer_finish_switch_fiber(pool->outside_fake_stack, NULL, NULL);
        pool->current = NULL;
}

/* Out of the coroutine; returns when it is entered again. `forever` lets the sanitizer free what it kept for
 * it. */
static void leave(struct co *co, bool forever)
{
        struct co_pool *pool = co->pool;

        __sanitizer_start_switch_fiber(
                forever ? NULL : &co->fake_stack, pool->outside_stack, pool->outside_size);
        co_context_switch(&co->context, &pool->outside);
        __sanitizer_finish_switch_fiber(co->fake_stack, &pool->outside_stack, &pool->outside_size);
}

/* The bottom frame of every coroutine: one entry after the other. Without an entry it goes for good. */
static void body(void *argument)
{
        struct co *co = argument;
        struct co_pool *pool = co->pool;

        __sanitizer_finish_switch_fiber(NULL, &pool->outside_stack, &pool->outside_size);
        while (co->entry) {
                co->entry(co->argument);
                pool->busy--;
                co->next = pool->idle;
                pool->idle = co;
                leave(co, false);
        }
        leave(co, true);
        __builtin_trap();
}

/* `bottom`: of the stack, above the page that is to fault. */
static int stack_protect(const struct co_pool *pool, char *bottom, size_t size)
{
        size_t page = page_size();
        int r;

        if (pool->guarded)
                return 0;
        r = pool->writable ? mprotect(bottom - page, page, PROT_NONE)
                           : mprotect(bottom, size, PROT_READ | PROT_WRITE);
        return r < 0 ? -ENOMEM : 0;
}

/* Makes the next untouched stack usable. Once for each: its locals must not burden co_start(). */
__attribute__((cold, noinline)) static int stack_open(struct co_pool *pool, struct co **ret)
{
        size_t page = page_size(), size = pool->stride - page;
        char *bottom = pool->area + pool->stride * pool->opened + page;
        uintptr_t top = (uintptr_t)bottom + size - pool->opened % COLOURS * COLOUR_STEP;
        struct co *co = (struct co *)((top - sizeof(struct co)) & ~(uintptr_t)63);
        int r;

        r = stack_protect(pool, bottom, size);
        if (r < 0)
                return r;
        *co = (struct co){.pool = pool, .stack = bottom, .stack_size = (size_t)((char *)co - bottom)};
        r = co_context_prepare(&co->context, bottom, co->stack_size, body, co);
        if (r < 0)
                return r;
        co->valgrind_id = VALGRIND_STACK_REGISTER(bottom, (char *)co - 1);
        pool->opened++;
        *ret = co;
        return 0;
}

/* Inlined: the start of a request is counted in instructions. */
__attribute__((always_inline)) static inline int take(
        struct co_pool *pool, void (*entry)(void *argument), void *argument, struct co **ret)
{
        struct co *co = pool->idle;
        int r;

        if (co) {
                pool->idle = co->next;
        } else {
                if (pool->opened == pool->count)
                        return -EAGAIN;
                r = stack_open(pool, &co);
                if (r < 0)
                        return r;
        }
        co->next = NULL;
        co->entry = entry;
        co->argument = argument;
        pool->busy++;
        *ret = co;
        return 0;
}

int co_start(struct co_pool *pool, void (*entry)(void *argument), void *argument)
{
        struct co *co;
        int r = take(pool, entry, argument, &co);

        if (r >= 0)
                enter(co);
        return r;
}

int co_prepare(struct co_pool *pool, void (*entry)(void *argument), void *argument, struct co **ret)
{
        return take(pool, entry, argument, ret);
}

void co_resume(struct co *co)
{
        enter(co);
}

void co_suspend(struct co *co)
{
        assert(co->pool->current == co);
        leave(co, false);
}

void co_pool_destroy(struct co_pool *pool)
{
        assert(pool->busy == 0);
        while (pool->idle) {
                struct co *co = pool->idle;

                pool->idle = co->next;
                co->entry = NULL;
                enter(co);
                VALGRIND_STACK_DEREGISTER(co->valgrind_id);
        }
        if (pool->area) {
                __asan_unpoison_memory_region(pool->area, pool->area_size); /* frames that never returned */
                (void)munmap(pool->area, pool->area_size);
        }
        *pool = (struct co_pool){};
}
