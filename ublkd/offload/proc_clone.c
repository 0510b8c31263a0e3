/* SPDX-License-Identifier: MIT */
/* clone3() as posix_spawn() uses it, with CLONE_INTO_CGROUP: the C library can do that since its version 2.39 only, and
 * has no function for clone3() itself. A process that is moved after its start instead is in our group for a moment, and
 * a move holds up all starts and exits of the machine for some milliseconds. */
#include "ublkd/offload/proc_clone.h"

#include "ublkd/base/cleanup.h"

#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { STACK_SIZE = 64 * 1024 };

/* In the process, which begins after the system call with an empty stack, and so cannot return from here: call `run`,
 * and exit with what it returns. In the caller: return what clone3() does. */
#if defined(__x86_64__)
static long clone_and_run(struct clone_args *args, int (*run)(void *userdata), void *userdata)
{
        long result;

        __asm__ volatile("syscall\n\t"
                         "testq %%rax, %%rax\n\t"
                         "jnz 1f\n\t"
                         "movq %[userdata], %%rdi\n\t"
                         "callq *%[run]\n\t"
                         "movl %%eax, %%edi\n\t"
                         "movl %[exit], %%eax\n\t"
                         "syscall\n"
                         "1:"
                         : "=a"(result)
                         : "a"(SYS_clone3), "D"(args),
                         "S"(sizeof(*args)), [run] "r"(run), [userdata] "r"(userdata), [exit] "i"(SYS_exit)
                         : "rcx", "r11", "memory", "cc");
        return result;
}
#elif defined(__aarch64__)
static long clone_and_run(struct clone_args *args, int (*run)(void *userdata), void *userdata)
{
        register long x0 __asm__("x0") = (long)args;
        register long x1 __asm__("x1") = sizeof(*args);
        register long x8 __asm__("x8") = SYS_clone3;

        __asm__ volatile("svc #0\n\t"
                         "cbnz x0, 1f\n\t"
                         "mov x0, %[userdata]\n\t"
                         "blr %[run]\n\t"
                         "mov x8, %[exit]\n\t"
                         "svc #0\n"
                         "1:"
                         : "+r"(x0)
                         : "r"(x1), "r"(x8), [run] "r"(run), [userdata] "r"(userdata), [exit] "i"(SYS_exit)
                         : "memory", "cc");
        return x0;
}
#else
static long clone_and_run(
        struct clone_args *args _unused_, int (*run)(void *userdata) _unused_, void *userdata _unused_)
{
        return -ENOSYS;
}
#endif

int proc_clone(int group, int (*run)(void *userdata), void *userdata, pid_t *ret_pid, int *ret_pidfd)
{
        void *stack = mmap(
                NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        int pidfd = -1;
        struct clone_args args = {
                .flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_CLEAR_SIGHAND | CLONE_INTO_CGROUP,
                .pidfd = (uintptr_t)&pidfd,
                .exit_signal = SIGCHLD,
                .stack = (uintptr_t)stack,
                .stack_size = STACK_SIZE,
                .cgroup = (uint64_t)group,
        };
        long r;

        if (stack == MAP_FAILED)
                return -errno;
        r = clone_and_run(&args, run, userdata);
        (void)munmap(stack, STACK_SIZE);
        if (r < 0)
                return (int)r;
        *ret_pid = (pid_t)r;
        *ret_pidfd = pidfd;
        return 0;
}
