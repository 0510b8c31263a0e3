/* SPDX-License-Identifier: MIT */
/* The first frame of a new stack, laid out as co_context_switch() in assembly will pop it. */
#include "targets/worker/io/co_switch.h"

#if !CO_SWITCH_UCONTEXT

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)

/* From low to high addresses: in the order of the pops. */
struct first_frame {
        uint64_t r15, r14, r13, r12, rbx, rbp;
        uint64_t return_address;
        uint64_t
                padding[2]; /* rsp is a multiple of 16 when co_context_start() begins, as its call needs it */
};
_Static_assert(offsetof(struct first_frame, padding) == 56, "see co_switch_x86_64.S");
_Static_assert(sizeof(struct first_frame) % 16 == 8, "what is above the seven pops is a multiple of 16");

static void fill(struct first_frame *frame, void (*entry)(void *), void *argument)
{
        *frame = (struct first_frame){
                .r13 = (uintptr_t)entry,
                .r12 = (uintptr_t)argument,
                .return_address = (uintptr_t)co_context_start,
        };
}

#elif defined(__aarch64__)

struct first_frame {
        uint64_t x19, x20, x21_to_x28[8], x29, x30, d8_to_d15[8];
};
_Static_assert(sizeof(struct first_frame) == 160, "see co_switch_aarch64.S");

static void fill(struct first_frame *frame, void (*entry)(void *), void *argument)
{
        *frame = (struct first_frame){
                .x19 = (uintptr_t)argument,
                .x20 = (uintptr_t)entry,
                .x30 = (uintptr_t)co_context_start,
        };
}

#endif

int co_context_prepare(
        struct co_context *context, void *bottom, size_t size, void (*entry)(void *argument), void *argument)
{
        struct first_frame *frame = (struct first_frame *)((char *)bottom + size) - 1;

        assert((uintptr_t)bottom % 16 == 0 && size % 16 == 0);
        fill(frame, entry, argument);
        context->stack_pointer = frame;
        return 0;
}

#endif
