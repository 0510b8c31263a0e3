/* SPDX-License-Identifier: MIT */
/* Asks the kernel what it has to confine a process with. */
#include "ublkd/kernel/kernel_walls.h"

#include "ublkd/kernel/call_arch.h"
#include "ublkd/kernel/call_paths.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444 /* the same for every CPU */
#endif

enum { CREATE_RULESET_VERSION = 1 << 0 };

int kernel_landlock(void)
{
        long version = syscall(SYS_landlock_create_ruleset, NULL, 0UL, CREATE_RULESET_VERSION);

        if (version >= 0)
                return (int)version;
        return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno; /* not built in; switched off */
}

/* EPERM is what the filter of a container may answer to a call that it does not know. */
bool kernel_refuses_paths(void)
{
        return syscall(SYS_fchroot, -1, 0U) < 0 && errno == EBADF;
}

static bool has_call_filter(void)
{
#ifdef CALLS_ARCH
        uint32_t refusal = SECCOMP_RET_ERRNO;

        return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0U, &refusal) == 0;
#else
        return false; /* a worker has no filter for this CPU (targets/worker/os/call_filter.c) */
#endif
}

struct kernel_walls kernel_walls_read(void)
{
        int landlock = kernel_landlock();

        return (struct kernel_walls){
                .landlock = landlock > 0 ? landlock : 0,
                .call_filter = has_call_filter(),
                .no_paths = kernel_refuses_paths(),
        };
}
