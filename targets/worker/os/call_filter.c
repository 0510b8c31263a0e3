/* SPDX-License-Identifier: MIT */
/* The system calls that a worker still has once its queues have fetched.
 *
 * What is not in the table is refused: no process or thread is made, nothing is executed or opened, no
 * socket and no ring is made, nothing is registered with a ring, and there is no ioctl(). io_uring_enter() is
 * the way to all I/O; the ring itself limits what is submitted to it (targets/worker/io/io_ring.h), because no filter
 * sees that.
 *
 * The kernel keeps a bitmap of the calls that are allowed whatever their arguments are, so that none of these
 * runs the program (seccomp_cache_prepare(), kernel/seccomp.c). A few calls are allowed with some values of
 * one argument only. Where mmap() takes its arguments in memory (s390x), a filter cannot see them: there is none. */
#include "targets/worker/os/call_filter.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define CALLS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CALLS_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define CALLS_ARCH AUDIT_ARCH_RISCV64
#elif defined(__powerpc64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define CALLS_ARCH AUDIT_ARCH_PPC64LE
#endif

#ifdef CALLS_ARCH

static const uint16_t calls[] = {
        /* I/O: rings, and what is done without them (tmpfs, the end of the store, the witness of flushes) */
        SYS_io_uring_enter,
        SYS_pread64,
        SYS_pwrite64,
        SYS_lseek,
#ifdef SYS_sync_file_range
        SYS_sync_file_range,
#else
        SYS_sync_file_range2,
#endif
/* the supervisor, and the eventfd between the threads */
#ifdef SYS_poll
        SYS_poll,
#endif
        SYS_ppoll,
        SYS_recvmsg,
        SYS_sendmsg,
        SYS_accept4,
        SYS_read,
        SYS_write,
        SYS_close,
        /* memory */
        SYS_brk,
        SYS_mmap,
        SYS_mprotect,
        SYS_munmap,
        SYS_mremap,
        SYS_madvise,
        /* threads, time, the end */
        SYS_futex,
        SYS_clock_gettime,
        SYS_clock_nanosleep,
        SYS_nanosleep,
        SYS_getpid,
        SYS_gettid,
        SYS_getrandom,
        SYS_restart_syscall,
        SYS_rt_sigaction,
        SYS_rt_sigprocmask,
        SYS_rt_sigreturn,
        SYS_sched_yield,
        SYS_exit,
        SYS_exit_group,
};

/* Of these calls an argument must not have any of these bits. */
static const struct bits_limit {
        uint16_t call;
        uint8_t argument;
        uint32_t bits;
} bits_limits[] = {
        {SYS_mmap,     2, PROT_EXEC               },
        {SYS_mmap,     3, MAP_LOCKED | MAP_HUGETLB},
        {SYS_mprotect, 2, PROT_EXEC               },
};

/* These calls are allowed where an argument is just that. */
static const struct value_limit {
        uint16_t call;
        uint8_t argument;
        uint32_t value;
} value_limits[] = {
        {SYS_fcntl,      1, F_OFD_SETLK},
        {SYS_fcntl,      1, F_OFD_GETLK},
        {SYS_getsockopt, 2, SO_PEERCRED},
};

enum {
        PROLOGUE = 4,
        EACH_LIMIT = 5,
        PROGRAM_SIZE = PROLOGUE + EACH_LIMIT * (ARRAY_SIZE(bits_limits) + ARRAY_SIZE(value_limits))
                       + 2 * ARRAY_SIZE(calls) + 1,
};

static uint32_t place_of_argument(unsigned argument)
{
        size_t at = offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t);

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        at += sizeof(uint32_t);
#endif
        return (uint32_t)at; /* of its lower half: the kernel takes no more of these */
}

static struct sock_filter load(uint32_t place)
{
        return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, place);
}

static struct sock_filter end(uint32_t verdict)
{
        return (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict);
}

/* skip: how many instructions if it is not so. */
static struct sock_filter unless_equal(uint32_t value, uint8_t skip)
{
        return (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip);
}

/* The number of the call is loaded, and is again if the limit does not end the program: the argument decides on
 * the next instruction, which returns `verdict`, or the one behind it. */
static struct sock_filter *add_limit(struct sock_filter *at, uint16_t call, unsigned argument,
        struct sock_filter decision, uint32_t verdict)
{
        *at++ = unless_equal(call, EACH_LIMIT - 1);
        *at++ = load(place_of_argument(argument));
        *at++ = decision;
        *at++ = end(verdict);
        *at++ = load(offsetof(struct seccomp_data, nr));
        return at;
}

static unsigned make_program(struct sock_filter program[static PROGRAM_SIZE])
{
        struct sock_filter *at = program;

        *at++ = load(offsetof(struct seccomp_data, arch));
        *at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALLS_ARCH, 1, 0);
        *at++ = end(SECCOMP_RET_KILL_PROCESS);
        *at++ = load(offsetof(struct seccomp_data, nr));
        for (size_t i = 0; i < ARRAY_SIZE(bits_limits); i++)
                at = add_limit(at, bits_limits[i].call, bits_limits[i].argument,
                        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits_limits[i].bits, 0, 1),
                        SECCOMP_RET_ERRNO | EPERM);
        for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
                *at++ = unless_equal(calls[i], 1);
                *at++ = end(SECCOMP_RET_ALLOW);
        }
        for (size_t i = 0; i < ARRAY_SIZE(value_limits); i++)
                at = add_limit(at, value_limits[i].call, value_limits[i].argument,
                        unless_equal(value_limits[i].value, 1), SECCOMP_RET_ALLOW);
        *at++ = end(SECCOMP_RET_ERRNO | EPERM);
        return (unsigned)(at - program);
}

int call_filter_install(void)
{
        struct sock_filter program[PROGRAM_SIZE];
        const struct sock_fprog filter = {.len = (unsigned short)make_program(program), .filter = program};
        long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);

        if (r > 0) /* the thread that could not be taken along */
                return -ESRCH;
        return r < 0 ? -errno : 0;
}

#else

int call_filter_install(void)
{
        return -ENOSYS;
}

#endif
