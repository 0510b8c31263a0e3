/* SPDX-License-Identifier: MIT */
/* What AddressSanitizer wants to know of a change of stacks; without it, nothing. */
#pragma once

#include <stddef.h>

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
