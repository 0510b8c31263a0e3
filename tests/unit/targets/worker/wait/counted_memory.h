/* SPDX-License-Identifier: MIT */
/* Counts what asks for memory while a queue serves: all that a wait needs is reserved before. Of a test that includes it, the linker
 * wraps each of COUNTED (tests/unit/targets/worker/wait/CMakeLists.txt). On any thread. What libraries do inside is not seen. */
#pragma once

#include "tests/unit/targets/worker/wait/wait_world.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

static atomic_uint allocations;

static inline void note_allocation(void)
{
        if (atomic_load(&world_serves))
                (void)atomic_fetch_add(&allocations, 1);
}

#define COUNTED(type, name, parameters, arguments)                                                           \
        type __real_##name parameters;                                                                       \
        type __wrap_##name parameters;                                                                       \
        type __wrap_##name parameters                                                                        \
        {                                                                                                    \
                note_allocation();                                                                           \
                return __real_##name arguments;                                                              \
        }

COUNTED(void *, malloc, (size_t size), (size))
COUNTED(void *, calloc, (size_t count, size_t size), (count, size))
COUNTED(void *, realloc, (void *memory, size_t size), (memory, size))
COUNTED(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
COUNTED(void *, mmap, (void *address, size_t length, int protection, int flags, int fd, off_t offset),
        (address, length, protection, flags, fd, offset))

/* Check that there was none, and that one would have been counted. */
static inline void check_no_allocations(void)
{
        void *volatile memory;

        CHECK_INT(atomic_load(&allocations), 0);
        atomic_store(&world_serves, true);
        memory = malloc(1);
        atomic_store(&world_serves, false);
        free(memory);
        CHECK_INT(atomic_load(&allocations), 1);
        atomic_store(&allocations, 0);
}
