/* SPDX-License-Identifier: MIT */
/* landlock: a worker goes on where the kernel lacks it, and fails where something else refuses the question. */
#include "targets/worker/os/landlock.h"
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/kernel_walls.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CREATE_RULESET = 444 }; /* landlock_create_ruleset(), for every CPU */

/* As the filter of a container: the call answers that error. */
static void refuse(int error)
{
        struct sock_filter steps[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CREATE_RULESET, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog filter = {.len = ARRAY_SIZE(steps), .filter = steps};

        CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        CHECK_INT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

static void check_answer(int error, int wanted)
{
        pid_t child = fork();
        int status = 0;

        if (child == 0) {
                refuse(error);
                CHECK_INT(kernel_landlock(), wanted);
                CHECK_INT(landlock_close(false), wanted);
                CHECK_INT(kernel_walls_read().landlock, 0);
                _exit(check_report());
        }
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(status, 0);
}

int main(void)
{
        check_answer(ENOSYS, 0);
        check_answer(EOPNOTSUPP, 0);
        check_answer(EPERM, -EPERM);
        check_answer(ENOMEM, -ENOMEM);
        return check_report();
}
