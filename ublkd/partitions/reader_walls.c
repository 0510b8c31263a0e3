/* SPDX-License-Identifier: MIT */
/* What the process that reads a partition table gives up. libblkid asks for more than it needs (it opens files of
 * /sys, for instance) and goes on where that is refused; so a refused call is EPERM and does not end the process. */
#include "ublkd/partitions/reader_walls.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/call_arch.h"

#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum {
        OVERFLOW_USER = 65534, /* uid and gid; they own nothing */
        MEMORY_MAX = 256 << 20,
        CPU_SECONDS = 20,
};

static int limit_resources(void)
{
        static const struct {
                __rlimit_resource_t resource;
                rlim_t value;
        } limits[] = {
                {RLIMIT_AS,      MEMORY_MAX },
                {RLIMIT_CPU,     CPU_SECONDS},
                {RLIMIT_CORE,    0          },
                {RLIMIT_FSIZE,   0          },
                {RLIMIT_MEMLOCK, 0          },
                {RLIMIT_NOFILE,  0          },
                {RLIMIT_NPROC,   0          },
        };

        for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
                if (setrlimit(limits[i].resource, &(const struct rlimit){limits[i].value, limits[i].value})
                        < 0)
                        return -errno;
        return 0;
}

/* Without capabilities that would be kept, leaving uid 0 drops all of them. It also clears PR_SET_PDEATHSIG. */
static int leave_root(void)
{
        pid_t parent = getppid();

        if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0 || setgroups(0, NULL) < 0
                || setresgid(OVERFLOW_USER, OVERFLOW_USER, OVERFLOW_USER) < 0
                || setresuid(OVERFLOW_USER, OVERFLOW_USER, OVERFLOW_USER) < 0)
                return -errno;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0
                || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                return -errno;
        return getppid() == parent ? 0 : -ESRCH;
}

#ifdef CALLS_ARCH

static const uint16_t calls[] = {
        SYS_read,
        SYS_pread64,
        SYS_lseek,
        SYS_write,
        SYS_fstat,
        SYS_newfstatat, /* what the C library takes for fstat() */
        SYS_ioctl, /* sizes of the disk; what changes something asks for capabilities, or a writable descriptor */
        SYS_fadvise64,
        SYS_close,
        SYS_brk,
        SYS_mmap,
        SYS_munmap,
        SYS_mremap,
        SYS_madvise,
        SYS_mprotect,
        SYS_futex,
        SYS_getrandom,
        SYS_clock_gettime,
        SYS_rt_sigprocmask,
        SYS_rt_sigreturn,
        SYS_restart_syscall,
        SYS_exit,
        SYS_exit_group,
};

enum { PROLOGUE = 4, PROGRAM_SIZE = PROLOGUE + 2 * ARRAY_SIZE(calls) + 1 };

static int filter_calls(void)
{
        struct sock_filter program[PROGRAM_SIZE] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALLS_ARCH, 1, 0),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        };
        struct sock_filter *at = program + PROLOGUE;
        const struct sock_fprog filter = {.len = PROGRAM_SIZE, .filter = program};

        for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
                *at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
                *at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        }
        *at = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0 ? -errno : 0;
}

#else

static int filter_calls(void)
{
        return 0;
}

#endif

int reader_walls_raise(void)
{
        int r = leave_root();

#if !defined(__SANITIZE_ADDRESS__) /* its shadow memory is larger, and its reports need more calls */
        if (r >= 0)
                r = limit_resources();
        if (r >= 0)
                r = filter_calls();
#else
        (void)limit_resources;
        (void)filter_calls;
#endif
        return r;
}
