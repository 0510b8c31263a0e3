/* SPDX-License-Identifier: MIT */
/* The system calls that a worker still has once its queues have fetched.
 *
 * What is not in the table is refused: no process or thread is made, nothing is executed or opened, no
 * socket and no ring is made, nothing is registered with a ring, and there is no ioctl(). io_uring_enter() is
 * the way to all I/O; the ring itself limits what is submitted to it (targets/worker/io/io_ring.h), because no filter
 * sees that.
 *
 * The kernel keeps a bitmap of the calls that are allowed whatever their arguments are, so that none of these
 * runs the program (seccomp_cache_prepare(), kernel/seccomp.c). For that it walks through the program once for every
 * call there is, while a recovery waits: so the calls are sorted, in blocks that it can skip. A few calls are allowed
 * with some values of one argument only. Where mmap() takes its arguments in memory (s390x), a filter cannot see
 * them: there is none. */
#include "targets/worker/os/call_filter.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/call_arch.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

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
        SYS_writev, /* the last words of the C library, before it ends the process */
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

/* Of the types of sockets, which are numbers; SOCK_STREAM is 1 on all CPUs of the table (call_arch.h). */
enum { NOT_STREAM = 0xf & ~SOCK_STREAM };
_Static_assert(SOCK_STREAM == 1, "a bit of its own");

/* Of these calls an argument must not have any of these bits. */
static const struct bits_limit {
        uint16_t call;
        uint8_t argument;
        uint32_t bits;
} bits_limits[] = {
        {SYS_mmap,     2, PROT_EXEC               },
        {SYS_mmap,     3, MAP_LOCKED | MAP_HUGETLB},
        {SYS_mprotect, 2, PROT_EXEC               },
        {SYS_socket,   1, NOT_STREAM              },
        {SYS_socket,   2, ~(uint32_t)IPPROTO_TCP  },
};

/* These calls are allowed where an argument is just that, the last of them only to a worker that connects. */
static const struct value_limit {
        uint16_t call;
        uint8_t argument;
        uint32_t value;
        bool connects;
} value_limits[] = {
        {SYS_fcntl,      1, F_OFD_SETLK, false},
        {SYS_fcntl,      1, F_OFD_GETLK, false},
        {SYS_getsockopt, 2, SO_PEERCRED, false},
        {SYS_getsockopt, 2, SO_ERROR,    true },
        {SYS_socket,     0, AF_INET,     true },
        {SYS_socket,     0, AF_INET6,    true },
};

/* What a worker that connects has as well. */
static const uint16_t connecting_calls[] = {SYS_connect};

enum {
        CALLS_MAX = ARRAY_SIZE(calls) + ARRAY_SIZE(connecting_calls) + ARRAY_SIZE(value_limits),
        BLOCK_CALLS = 7, /* about the square root of CALLS_MAX: the fewest steps for a call that is refused */
        PROLOGUE = 4,
        EACH_CALL = 2,
        EACH_LIMIT = 3,
        EACH_BLOCK = 2,
        PROGRAM_SIZE = PROLOGUE + EACH_CALL * CALLS_MAX
                       + EACH_LIMIT * (ARRAY_SIZE(bits_limits) + ARRAY_SIZE(value_limits))
                       + EACH_BLOCK * (CALLS_MAX / BLOCK_CALLS + 1) + 1,
};

_Static_assert(
        (EACH_CALL * BLOCK_CALLS) + EACH_LIMIT * (ARRAY_SIZE(bits_limits) + ARRAY_SIZE(value_limits)) + 1
                <= UINT8_MAX,
        "a block can be skipped");

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

/* Return `what` (BPF_JEQ, …) with a value: go on if it is so, else skip `skip` instructions. */
static struct sock_filter unless(unsigned what, uint32_t value, size_t skip)
{
        return (struct sock_filter)BPF_JUMP(BPF_JMP | what | BPF_K, value, 0, (uint8_t)skip);
}

static bool is_in(uint16_t call, const uint16_t *numbers, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (numbers[i] == call)
                        return true;
        return false;
}

/* Return `verdict` if the argument decides so, and go on else. */
static struct sock_filter *add_limit(
        struct sock_filter *at, unsigned argument, struct sock_filter decision, uint32_t verdict)
{
        *at++ = load(place_of_argument(argument));
        *at++ = decision;
        *at++ = end(verdict);
        return at;
}

/* Add what decides about one call, and ends the program. */
static struct sock_filter *add_verdict(struct sock_filter *at, uint16_t call, bool connects)
{
        bool allowed = is_in(call, calls, ARRAY_SIZE(calls))
                       || is_in(call, connecting_calls, ARRAY_SIZE(connecting_calls));

        for (size_t i = 0; i < ARRAY_SIZE(bits_limits); i++)
                if (bits_limits[i].call == call)
                        at = add_limit(at, bits_limits[i].argument, unless(BPF_JSET, bits_limits[i].bits, 1),
                                SECCOMP_RET_ERRNO | EPERM);
        for (size_t i = 0; i < ARRAY_SIZE(value_limits); i++)
                if (value_limits[i].call == call && (connects || !value_limits[i].connects))
                        at = add_limit(at, value_limits[i].argument,
                                unless(BPF_JEQ, value_limits[i].value, 1), SECCOMP_RET_ALLOW);
        *at++ = end(allowed ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | EPERM);
        return at;
}

static struct sock_filter *add_call(struct sock_filter *at, uint16_t call, bool connects)
{
        struct sock_filter *test = at, *after = add_verdict(at + 1, call, connects);

        *test = unless(BPF_JEQ, call, (size_t)(after - at) - 1);
        return after;
}

/* Skip the block if the call comes after those of it. */
static struct sock_filter *add_block(
        struct sock_filter *at, const uint16_t *numbers, size_t count, bool connects)
{
        struct sock_filter *test = at++, *after = at;

        for (size_t i = 0; i < count; i++)
                after = add_call(after, numbers[i], connects);
        *after++ = end(SECCOMP_RET_ERRNO | EPERM);
        *test = (struct sock_filter)BPF_JUMP(
                BPF_JMP | BPF_JGT | BPF_K, numbers[count - 1], (uint8_t)(after - at), 0);
        return after;
}

static int compare_numbers(const void *one, const void *other)
{
        return *(const uint16_t *)one - *(const uint16_t *)other;
}

/* Return how many calls the program knows, by number, each once. */
static size_t list_calls(bool connects, uint16_t numbers[static CALLS_MAX])
{
        size_t count = 0;

        for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
                numbers[count++] = calls[i];
        for (size_t i = 0; connects && i < ARRAY_SIZE(connecting_calls); i++)
                numbers[count++] = connecting_calls[i];
        for (size_t i = 0; i < ARRAY_SIZE(value_limits); i++)
                if (!is_in(value_limits[i].call, numbers, count))
                        numbers[count++] = value_limits[i].call;
        qsort(numbers, count, sizeof(numbers[0]), compare_numbers);
        return count;
}

static unsigned make_program(bool connects, struct sock_filter program[static PROGRAM_SIZE])
{
        uint16_t numbers[CALLS_MAX];
        size_t count = list_calls(connects, numbers);
        struct sock_filter *at = program;

        *at++ = load(offsetof(struct seccomp_data, arch));
        *at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALLS_ARCH, 1, 0);
        *at++ = end(SECCOMP_RET_KILL_PROCESS);
        *at++ = load(offsetof(struct seccomp_data, nr));
        for (size_t i = 0; i < count; i += BLOCK_CALLS)
                at = add_block(at, numbers + i, count - i < BLOCK_CALLS ? count - i : BLOCK_CALLS, connects);
        *at++ = end(SECCOMP_RET_ERRNO | EPERM);
        return (unsigned)(at - program);
}

int call_filter_install(bool connects)
{
        struct sock_filter program[PROGRAM_SIZE];
        const struct sock_fprog filter = {
                .len = (unsigned short)make_program(connects, program), .filter = program};
        long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);

        if (r > 0) /* the thread that could not be taken along */
                return -ESRCH;
        return r < 0 ? -errno : 0;
}

#else

int call_filter_install(bool connects _unused_)
{
        return -ENOSYS;
}

#endif
