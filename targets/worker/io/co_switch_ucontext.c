/* SPDX-License-Identifier: MIT */
/* Switching stacks by ucontext(3), for CPUs that have no assembly here. */
#include "targets/worker/io/co_switch.h"

#if CO_SWITCH_UCONTEXT

#include <errno.h>
#include <stdint.h>

/* makecontext() passes ints only: a pointer travels as two of them. */
struct first_call {
        void (*entry)(void *argument);
        void *argument;
};

static void start(unsigned high, unsigned low)
{
        const struct first_call *first = (const struct first_call *)((uintptr_t)((uint64_t)high << 32 | low));

        first->entry(first->argument);
        __builtin_trap();
}

int co_context_prepare(
        struct co_context *context, void *bottom, size_t size, void (*entry)(void *argument), void *argument)
{
        struct first_call *first = (struct first_call *)((char *)bottom + size) - 1;
        uint64_t address = (uintptr_t)first;

        if (getcontext(&context->ucontext) < 0)
                return -errno;
        *first = (struct first_call){.entry = entry, .argument = argument};
        context->ucontext.uc_stack.ss_sp = bottom;
        context->ucontext.uc_stack.ss_size = size - sizeof(*first);
        context->ucontext.uc_link = NULL;
        makecontext(
                &context->ucontext, (void (*)(void))start, 2, (unsigned)(address >> 32), (unsigned)address);
        return 0;
}

void co_context_switch(struct co_context *from, struct co_context *to)
{
        (void)swapcontext(&from->ucontext, &to->ucontext);
}

#endif
