/* SPDX-License-Identifier: MIT */
/* Memory that stays in RAM. Locked on fault: nothing is read in for it. */
#include "ublkd/base/ram.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* linux/prctl.h, since Linux 5.6 */
#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

/* A sanitizer reserves terabytes, and gives parts of them back, which locked memory refuses. */
#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif

/* A stack that is locked grows within the limit on locked memory only, and a process may lower that to nothing. */
enum { STACK_MIN = 512 * 1024 };

__attribute__((noinline)) static void grow_stack(void)
{
        volatile char depth[STACK_MIN];

        depth[0] = 0; /* one page of it is touched */
        (void)depth[0];
}

static int lock(int flags)
{
        if (SANITIZED)
                return 0;
        return mlockall(flags | MCL_ONFAULT) < 0 ? -errno : 0;
}

int ram_keep_mapped(void)
{
        grow_stack();
        return lock(MCL_CURRENT);
}

int ram_keep_all(void)
{
        static const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
        struct rlimit limit;

        if (setrlimit(RLIMIT_MEMLOCK, &none) < 0) {
                int r = -errno;

                if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur != RLIM_INFINITY)
                        return r;
        }
        return lock(MCL_CURRENT | MCL_FUTURE);
}

__attribute__((noinline)) void ram_drop_stack(void)
{
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        uintptr_t end =
                ((uintptr_t)__builtin_frame_address(0) & ~(page - 1)) - page; /* madvise() has a frame, too */

        (void)madvise(
                (void *)(end - STACK_MIN), STACK_MIN, MADV_DONTNEED_LOCKED); /* frees what there is of it */
}

int ram_wait_for_no_io(void)
{
        return prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) < 0 ? -errno : 0;
}
