/* SPDX-License-Identifier: MIT */
/* Switching stacks on AArch64 (AAPCS64): x19 to x30 and the low halves of v8 to v15 belong to the callee. `br` rather
 * than `ret` leaves the CPU's stack of return addresses alone. */
        .text

/* void co_context_switch(struct co_context *from [x0], struct co_context *to [x1]) */
        .globl co_context_switch
        .type co_context_switch, %function
        .p2align 5
co_context_switch:
        .cfi_startproc
        hint #34 /* bti c */
        sub sp, sp, #160
        stp x19, x20, [sp, #0]
        stp x21, x22, [sp, #16]
        stp x23, x24, [sp, #32]
        stp x25, x26, [sp, #48]
        stp x27, x28, [sp, #64]
        stp x29, x30, [sp, #80]
        stp d8, d9, [sp, #96]
        stp d10, d11, [sp, #112]
        stp d12, d13, [sp, #128]
        stp d14, d15, [sp, #144]
        mov x9, sp
        str x9, [x0]
        ldr x9, [x1]
        mov sp, x9
        ldp x19, x20, [sp, #0]
        ldp x21, x22, [sp, #16]
        ldp x23, x24, [sp, #32]
        ldp x25, x26, [sp, #48]
        ldp x27, x28, [sp, #64]
        ldp x29, x16, [sp, #80]
        ldp d8, d9, [sp, #96]
        ldp d10, d11, [sp, #112]
        ldp d12, d13, [sp, #128]
        ldp d14, d15, [sp, #144]
        add sp, sp, #160
        mov x30, x16
        br x16
        .cfi_endproc
        .size co_context_switch, . - co_context_switch

/* The first thing that runs on a new stack: entry is in x20, its argument in x19 (see co_switch_native.c). */
        .globl co_context_start
        .type co_context_start, %function
        .p2align 4
co_context_start:
        .cfi_startproc
        .cfi_undefined x30
        hint #36 /* bti j */
        mov x29, xzr
        mov x0, x19
        blr x20
        brk #1
        .cfi_endproc
        .size co_context_start, . - co_context_start

        .section .note.GNU-stack, "", %progbits
