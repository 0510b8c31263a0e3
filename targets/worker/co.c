/* Stackful coroutines, and the pool of their stacks.
 *
 * A coroutine that has ended is not torn down: it waits inside body() for its next entry, so that starting
 * one is a single switch. AddressSanitizer must be told of every change of stacks; the hooks vanish without
 * it. */
#include "targets/worker/co.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
static inline void __sanitizer_start_switch_fiber(void **fake_stack, const void *bottom, size_t size)
{
        (void)fake_stack;
        (void)bottom;
        (void)size;
}

static inline void __sanitizer_finish_switch_fiber(void *fake_stack, const void **bottom, size_t *size)
{
        (void)fake_stack;
        (void)bottom;
        (void)size;
}

static inline void __asan_unpoison_memory_region(const volatile void *address, size_t size)
{
        (void)address;
        (void)size;
}
#endif

/* All stacks end at the same place within a page. Beginning each a little lower than the one before spreads
 * their busiest lines over the sets of the first-level cache. */
enum { COLOUR_STEP = 128, COLOURS = 16 };

static size_t page_size(void)
{
        return (size_t)sysconf(_SC_PAGESIZE);
}

int co_pool_init(struct co_pool *pool, size_t stack_size, unsigned count)
{
        size_t page = page_size();
        void *area;

        if (stack_size < 4 * page || stack_size % page != 0 || stack_size > SIZE_MAX / 2 / CO_COUNT_MAX)
                return -EINVAL;
        if (count == 0 || count > CO_COUNT_MAX)
                return -EINVAL;
        area = mmap(NULL, (stack_size + page) * count, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (area == MAP_FAILED)
                return -errno;
        /* A huge page would make one touched stack cost as much as thirty. Kernels without them say EINVAL.
         */
        (void)madvise(area, (stack_size + page) * count, MADV_NOHUGEPAGE);
        *pool = (struct co_pool){
                .area = area,
                .area_size = (stack_size + page) * count,
                .stride = stack_size + page,
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

/* Makes the next untouched stack usable. */
static int stack_open(struct co_pool *pool, struct co **ret)
{
        size_t page = page_size(), size = pool->stride - page;
        char *bottom = pool->area + pool->stride * pool->opened + page;
        uintptr_t top = (uintptr_t)bottom + size - pool->opened % COLOURS * COLOUR_STEP;
        struct co *co = (struct co *)((top - sizeof(struct co)) & ~(uintptr_t)63);
        int r;

        if (mprotect(bottom, size, PROT_READ | PROT_WRITE) < 0)
                return -ENOMEM;
        *co = (struct co){.pool = pool, .stack = bottom, .stack_size = (size_t)((char *)co - bottom)};
        r = co_context_prepare(&co->context, bottom, co->stack_size, body, co);
        if (r < 0)
                return r;
        pool->opened++;
        *ret = co;
        return 0;
}

int co_start(struct co_pool *pool, void (*entry)(void *argument), void *argument)
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
        enter(co);
        return 0;
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
        }
        if (pool->area) {
                __asan_unpoison_memory_region(pool->area, pool->area_size); /* frames that never returned */
                (void)munmap(pool->area, pool->area_size);
        }
        *pool = (struct co_pool){};
}
