/* SPDX-License-Identifier: MIT */
/* Switching stacks on x86-64 (System V ABI).
 *
 * The callee-saved registers are pushed on the old stack and popped from the new one. MXCSR and the x87 control word
 * are callee-saved too, but nothing in this program changes them, so all contexts of a thread agree.
 *
 * The switch ends in `pop; jmp`, not in `ret`: the CPU predicts a `ret` from its stack of return addresses, which
 * after a change of stacks is wrong every time (31 to 47 ns instead of 5 to 7).
 *
 * For the same reason a shadow stack (CET) would reject it. This file has no .note.gnu.property, so the linker does not
 * mark the program as ready for one. */
        .text

/* void co_context_switch(struct co_context *from [rdi], struct co_context *to [rsi]) */
        .globl co_context_switch
        .type co_context_switch, @function
        .p2align 5
co_context_switch:
        .cfi_startproc
        pushq %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        pushq %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        pushq %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r12, 0
        pushq %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r13, 0
        pushq %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r14, 0
        pushq %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r15, 0
        movq %rsp, (%rdi)
        movq (%rsi), %rsp
        popq %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r15
        popq %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r14
        popq %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r13
        popq %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r12
        popq %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        popq %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbp
        popq %rcx
        .cfi_adjust_cfa_offset -8
        .cfi_register %rip, %rcx
        jmpq *%rcx
        .cfi_endproc
        .size co_context_switch, . - co_context_switch

/* The first thing that runs on a new stack: entry is in r13, its argument in r12 (see co_switch_native.c). The
 * unwinder finds that there is no caller. */
        .globl co_context_start
        .type co_context_start, @function
        .p2align 4
co_context_start:
        .cfi_startproc
        .cfi_undefined %rip
        xorl %ebp, %ebp
        movq %r12, %rdi
        callq *%r13
        ud2
        .cfi_endproc
        .size co_context_start, . - co_context_start

        .section .note.GNU-stack, "", @progbits
