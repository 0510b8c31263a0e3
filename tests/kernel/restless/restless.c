/* SPDX-License-Identifier: MIT */
/* For the worker that gives memory back in every round: takes its time just before the pages are moved, and
 * just after, so that requests come then which would else do so once in a million times. The linker puts this
 * in the place of the real call (--wrap). */
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>

static void take_time(void)
{
        const struct timespec time = {.tv_nsec = 100000};

        (void)nanosleep(&time, NULL);
}

void *__real_mremap(void *address, size_t length, size_t new_length, int flags, void *hint);
void *__wrap_mremap(void *address, size_t length, size_t new_length, int flags, void *hint);

void *__wrap_mremap(void *address, size_t length, size_t new_length, int flags, void *hint)
{
        void *result;

        take_time();
        result = __real_mremap(address, length, new_length, flags, hint);
        take_time();
        return result;
}
