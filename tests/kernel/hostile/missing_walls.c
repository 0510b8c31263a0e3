/* SPDX-License-Identifier: MIT */
/* Walls that are missing: $UBLKD_HOSTILE_MISSING names the function that cannot build its wall. The linker puts these
 * functions in the place of the real ones (--wrap). */
#include <errno.h>
#include <liburing.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool is_missing(const char *function)
{
        const char *missing = getenv("UBLKD_HOSTILE_MISSING");

        return missing && strcmp(missing, function) == 0;
}

/* clang-format off */
#define WALL(function, parameters, arguments)                                        \
        int __real_##function parameters;                                            \
        int __wrap_##function parameters;                                            \
        int __wrap_##function parameters                                             \
        {                                                                            \
                return is_missing(#function) ? -EPERM : __real_##function arguments; \
        }

WALL(sandbox_begin, (void), ())
WALL(sandbox_leave_host, (int *ret_network), (ret_network))
WALL(sandbox_leave_files, (int empty), (empty))
WALL(sandbox_leave_user, (uint32_t user), (user))
WALL(sandbox_drop_capabilities, (void), ())
WALL(sandbox_hide_memory, (void), ())
WALL(landlock_close, (bool connects), (connects))
WALL(log_close_shared, (void), ())
WALL(io_ring_start, (struct io_uring *ring, bool fixed_files, unsigned extras), (ring, fixed_files, extras))
/* clang-format on */

int __real_unshare(int flags);
int __wrap_unshare(int flags);

/* Not a wall: "tables" leaves the threads without tables of descriptors. */
int __wrap_unshare(int flags)
{
        if (flags != CLONE_FILES || !is_missing("tables"))
                return __real_unshare(flags);
        errno = ENOMEM;
        return -1;
}

int __real_call_filter_install(bool connects);
int __wrap_call_filter_install(bool connects);

/* What the filter refuses, the other walls must refuse as well where they can: without it they are seen. */
int __wrap_call_filter_install(bool connects)
{
        if (is_missing("call_filter_install"))
                return -EPERM;
        return getenv("UBLKD_HOSTILE_WITHOUT_FILTER") ? 0 : __real_call_filter_install(connects);
}
