/* SPDX-License-Identifier: MIT */
/* The system calls that a worker still has once its queues have fetched.
 *
 * What is not in the table is refused: no process or thread is made, nothing is executed or opened, no
 * socket and no ring is made, nothing is registered with a ring, and there is no ioctl(). io_uring_enter() is
 * the way to all I/O; the ring itself limits what is submitted to it (targets/worker/io/io_ring.h), because no filter
 * sees that.
 *
 * A few calls are allowed with some values of one argument only. Where mmap() takes its arguments in memory (s390x), a
 * filter cannot see them: there is none.
 *
 * The kernel keeps a bitmap of the calls that are allowed whatever their arguments are, so that none of these
 * runs the program (seccomp_cache_prepare(), kernel/seccomp.c). For that it walks through the program once for every
 * call that all earlier filters allow in this way, while a recovery waits; and it compiles the program. So the program
 * is small: it searches by halves, for runs of calls. And call_filter_prepare() installs a filter that allows all calls,
 * but those of the table alone in this way: after it the kernel walks for these few only. It trusts that filter with
 * nothing else, since this one refuses by itself whatever is not in the table. */
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

enum { REGISTER_FILES_UPDATE = 6 }; /* of <linux/io_uring.h>: a socket takes the place of one that is gone */

/* These calls are allowed where an argument is just that, the last of them only to a worker that connects. */
static const struct value_limit {
        uint16_t call;
        uint8_t argument;
        uint32_t value;
        bool connects;
} value_limits[] = {
        {SYS_fcntl,             1, F_OFD_SETLK,           false},
        {SYS_fcntl,             1, F_OFD_GETLK,           false},
        {SYS_getsockopt,        2, SO_PEERCRED,           false},
        {SYS_getsockopt,        2, SO_ERROR,              true },
        {SYS_socket,            0, AF_INET,               true },
        {SYS_socket,            0, AF_INET6,              true },
        {SYS_io_uring_register, 1, REGISTER_FILES_UPDATE,
         true                                                  }, /* the ring limits it, too: io_ring_start() */
};

/* What a worker that connects has as well. */
static const uint16_t connecting_calls[] = {SYS_connect};

/* What the program decides about a call: one of these, or by its arguments, as the tables of limits say for the call of
 * this number. Without being cached: the kernel asks the program each time. */
enum verdict { REFUSED = -1, ALLOWED = -2, ALLOWED_NOT_CACHED = -3 };

/* All calls from `first` on, up to the next segment. */
struct segment {
        unsigned first;
        int verdict;
};

enum {
        CALLS_MAX = ARRAY_SIZE(calls) + ARRAY_SIZE(connecting_calls) + ARRAY_SIZE(value_limits),
        SEGMENTS_MAX = 2 * CALLS_MAX + 1,
        PROLOGUE = 3,
        EACH_LIMIT = 2,
        ENDS = 4,
        PROGRAM_SIZE = PROLOGUE + SEGMENTS_MAX
                       + EACH_LIMIT * (ARRAY_SIZE(bits_limits) + ARRAY_SIZE(value_limits)) + ENDS,
};

_Static_assert(PROGRAM_SIZE <= UINT8_MAX, "a jump reaches every place");

/* A program that is written from its end: a jump only goes forward, to a place that is known then. */
struct program {
        struct sock_filter code[PROGRAM_SIZE];
        size_t begin; /* of what is written */
        size_t refused, allowed, not_cached;
        bool connects;
};

static size_t put(struct program *program, struct sock_filter instruction)
{
        program->code[--program->begin] = instruction;
        return program->begin;
}

static size_t put_end(struct program *program, uint32_t result)
{
        return put(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result));
}

static size_t put_load(struct program *program, size_t place)
{
        return put(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)place));
}

/* comparison: BPF_JEQ, … with `value`. */
static size_t put_test(struct program *program, unsigned comparison, uint32_t value, size_t yes, size_t no)
{
        size_t next = program->begin;

        return put(program, (struct sock_filter)BPF_JUMP(BPF_JMP | comparison | BPF_K, value,
                                    (uint8_t)(yes - next), (uint8_t)(no - next)));
}

static size_t place_of_argument(unsigned argument)
{
        size_t at = offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t);

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        at += sizeof(uint32_t);
#endif
        return at; /* of its lower half: the kernel takes no more of these */
}

static bool is_in(uint16_t call, const uint16_t *numbers, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (numbers[i] == call)
                        return true;
        return false;
}

static bool has_limits(uint16_t call)
{
        for (size_t i = 0; i < ARRAY_SIZE(bits_limits); i++)
                if (bits_limits[i].call == call)
                        return true;
        for (size_t i = 0; i < ARRAY_SIZE(value_limits); i++)
                if (value_limits[i].call == call)
                        return true;
        return false;
}

/* What no value decides is allowed if the call is in a table of those without limits. The bits are looked at first. */
static size_t put_limits(struct program *program, uint16_t call)
{
        size_t next = is_in(call, calls, ARRAY_SIZE(calls)) ? program->allowed : program->refused;

        for (size_t i = 0; i < ARRAY_SIZE(value_limits); i++)
                if (value_limits[i].call == call && (program->connects || !value_limits[i].connects)) {
                        (void)put_test(program, BPF_JEQ, value_limits[i].value, program->allowed, next);
                        next = put_load(program, place_of_argument(value_limits[i].argument));
                }
        for (size_t i = 0; next != program->refused && i < ARRAY_SIZE(bits_limits); i++)
                if (bits_limits[i].call == call) {
                        (void)put_test(program, BPF_JSET, bits_limits[i].bits, program->refused, next);
                        next = put_load(program, place_of_argument(bits_limits[i].argument));
                }
        return next;
}

static size_t put_verdict(struct program *program, int verdict)
{
        switch (verdict) {
        case REFUSED:
                return program->refused;
        case ALLOWED:
                return program->allowed;
        case ALLOWED_NOT_CACHED:
                return program->not_cached;
        default:
                return put_limits(program, (uint16_t)verdict);
        }
}

/* Put what finds the segment of a call, by halves. Return where that begins. */
static size_t put_search(struct program *program, const struct segment *segments, size_t count)
{
        size_t half = count / 2, low, high;

        if (count == 1)
                return put_verdict(program, segments[0].verdict);
        high = put_search(program, segments + half, count - half);
        low = put_search(program, segments, half);
        return put_test(program, BPF_JGE, segments[half].first, high, low);
}

static unsigned make_program(
        const struct segment *segments, size_t count, bool connects, struct program *program)
{
        size_t killed;

        *program = (struct program){.begin = PROGRAM_SIZE, .connects = connects};
        killed = put_end(program, SECCOMP_RET_KILL_PROCESS);
        program->refused = put_end(program, SECCOMP_RET_ERRNO | EPERM);
        program->allowed = put_end(program, SECCOMP_RET_ALLOW);
        program->not_cached = put_load(program, place_of_argument(0)); /* what has seen one is not cached */
        (void)put_search(program, segments, count);
        (void)put_load(program, offsetof(struct seccomp_data, nr));
        (void)put_test(program, BPF_JEQ, CALLS_ARCH, program->begin, killed);
        (void)put_load(program, offsetof(struct seccomp_data, arch));
        return (unsigned)(PROGRAM_SIZE - program->begin);
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

/* A segment that begins where the last one does takes its place: there is no call in that one. */
static void add_segment(struct segment *segments, size_t *count, unsigned first, int verdict)
{
        if (*count > 0 && segments[*count - 1].first == first)
                (*count)--;
        if (*count == 0 || segments[*count - 1].verdict != verdict)
                segments[(*count)++] = (struct segment){.first = first, .verdict = verdict};
}

/* others: the verdict about a call that no table has. limits: those with limits are decided by them; else like the
 * others. Return how many segments there are. */
static size_t list_segments(
        bool connects, int others, bool limits, struct segment segments[static SEGMENTS_MAX])
{
        uint16_t numbers[CALLS_MAX];
        size_t calls_count = list_calls(connects, numbers), count = 0;

        add_segment(segments, &count, 0, others);
        for (size_t i = 0; i < calls_count; i++) {
                bool limited = has_limits(numbers[i]);

                add_segment(segments, &count, numbers[i], !limited ? ALLOWED : limits ? numbers[i] : others);
                add_segment(segments, &count, numbers[i] + 1U, others);
        }
        return count;
}

static int install(bool connects, int others, bool limits, unsigned flags)
{
        struct segment segments[SEGMENTS_MAX];
        size_t count = list_segments(connects, others, limits, segments);
        struct program program;
        unsigned size = make_program(segments, count, connects, &program);
        const struct sock_fprog filter = {
                .len = (unsigned short)size, .filter = program.code + program.begin};
        long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);

        if (r > 0) /* the thread that could not be taken along */
                return -ESRCH;
        return r < 0 ? -errno : 0;
}

int call_filter_prepare(void)
{
        return install(true, ALLOWED_NOT_CACHED, false, 0);
}

int call_filter_install(bool connects)
{
        return install(connects, REFUSED, true, SECCOMP_FILTER_FLAG_TSYNC);
}

#else

int call_filter_prepare(void)
{
        return -ENOSYS;
}

int call_filter_install(bool connects _unused_)
{
        return -ENOSYS;
}

#endif
