/* SPDX-License-Identifier: MIT */
/* kernel_walls: on a CPU for which a worker has no filter of system calls, that wall is missing, whatever the kernel has. */
#include "ublkd/kernel/call_arch.h"

#undef CALLS_ARCH
#include "ublkd/kernel/kernel_walls.c"

#include "tests/unit/check.h"

int main(void)
{
        CHECK(!kernel_walls_read().call_filter);
        return check_report();
}
