/* SPDX-License-Identifier: MIT */
/* The part of a coroutine that depends on the CPU: save one stack, go on with another.
 *
 * co_switch_x86_64.S and co_switch_aarch64.S are a dozen instructions each; co_switch_ucontext.c is the same
 * interface over ucontext(3) for all other machines, and some hundred times slower (two system calls a
 * switch). The compiler's target decides, or -DUBLKD_COROUTINE_UCONTEXT. */
#pragma once

#include <stddef.h>

#if defined(UBLKD_COROUTINE_UCONTEXT) || !(defined(__x86_64__) || defined(__aarch64__))

#define CO_SWITCH_UCONTEXT 1
#include <ucontext.h>

struct co_context {
        ucontext_t ucontext;
};

#else

#define CO_SWITCH_UCONTEXT 0

/* All callee-saved registers are on the stack while a context is not running; this is its address. */
struct co_context {
        void *stack_pointer;
};

/* Call the entry of a new stack. The first frame leads there; no function in C calls it. */
void co_context_start(void);

#endif

/* Prepare `context` to run entry(argument) on the stack [bottom, bottom + size), 16-byte aligned at both
 * ends. entry must never return. Return 0 or -errno. */
int co_context_prepare(
        struct co_context *context, void *bottom, size_t size, void (*entry)(void *argument), void *argument);

/* Save the running context in `from` and continue with `to`. Return when a switch leads back to `from`. */
void co_context_switch(struct co_context *from, struct co_context *to);
