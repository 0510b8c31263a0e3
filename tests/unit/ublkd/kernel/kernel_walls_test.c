/* SPDX-License-Identifier: MIT */
/* kernel_walls: a wall that this kernel does not have, or that a container refuses, is missing, and the others are not. */
#include "ublkd/kernel/kernel_walls.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/call_paths.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CREATE_RULESET = 444 }; /* landlock_create_ruleset(), for every CPU */

/* As an older kernel, or as the filter of a container: the call answers that error. */
static void refuse(long call, int error)
{
        struct sock_filter steps[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog filter = {.len = ARRAY_SIZE(steps), .filter = steps};

        CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        CHECK_INT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

static void check_without(long call, int error, struct kernel_walls wanted)
{
        pid_t child = fork();
        int status = 0;

        if (child == 0) {
                struct kernel_walls found;

                refuse(call, error);
                found = kernel_walls_read();
                CHECK_INT(found.landlock, wanted.landlock);
                CHECK_INT(found.call_filter, wanted.call_filter);
                CHECK_INT(found.no_paths, wanted.no_paths);
                _exit(check_report());
        }
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(status, 0);
}

int main(void)
{
        static const int errors[] = {ENOSYS, EPERM};
        const struct kernel_walls here = kernel_walls_read();

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
                check_without(CREATE_RULESET, errors[i],
                        (struct kernel_walls){.call_filter = here.call_filter, .no_paths = here.no_paths});
                check_without(SYS_seccomp, errors[i],
                        (struct kernel_walls){.landlock = here.landlock, .no_paths = here.no_paths});
                check_without(SYS_fchroot, errors[i],
                        (struct kernel_walls){.landlock = here.landlock, .call_filter = here.call_filter});
        }
        return check_report();
}
