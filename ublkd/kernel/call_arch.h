/* SPDX-License-Identifier: MIT */
/* CALLS_ARCH: the name that seccomp has for this CPU. Not defined for a CPU whose system calls no filter of ours
 * knows. */
#pragma once

#include <linux/audit.h>

#if defined(__x86_64__)
#define CALLS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CALLS_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define CALLS_ARCH AUDIT_ARCH_RISCV64
#elif defined(__powerpc64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define CALLS_ARCH AUDIT_ARCH_PPC64LE
#endif
