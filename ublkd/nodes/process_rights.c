/* SPDX-License-Identifier: MIT */
/* The rights of a process of ublkd that enters the namespaces of others. */
#include "ublkd/nodes/process_rights.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int rights_set(uint64_t permitted, uint64_t effective)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        const struct __user_cap_data_struct data[] = {
                {.permitted = (uint32_t)permitted,         .effective = (uint32_t)effective        },
                {.permitted = (uint32_t)(permitted >> 32), .effective = (uint32_t)(effective >> 32)},
        };

        return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int rights_hide(void)
{
        return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0
                       ? -errno
                       : 0;
}
