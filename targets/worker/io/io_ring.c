/* SPDX-License-Identifier: MIT */
/* Opens a ring in the best way that the kernel has, and hands over its entries. */
#include "targets/worker/io/io_ring.h"
#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef IORING_SETUP_NO_SQARRAY
#define IORING_SETUP_NO_SQARRAY (1U << 16) /* Linux 6.6 */
#endif
#ifndef IORING_FEAT_NO_IOWAIT
#define IORING_FEAT_NO_IOWAIT (1U << 17) /* Linux 6.15 */
#endif
#ifndef IORING_ENTER_NO_IOWAIT
#define IORING_ENTER_NO_IOWAIT (1U << 7) /* with the feature */
#endif

/* The ways to run a ring, the fastest first. A kernel refuses a way that it does not know with EINVAL.
 *
 * DEFER_TASKRUN would be there since 6.1, but on 6.12 the kernel sometimes crashes (a null pointer in
 * io_fallback_tw()) when a process is killed that has direct I/O in flight on such a ring: 4 times in some
 * 300 deaths, and never in as many without it. A worker must be safe to kill, so it is for kernels with a
 * feature that came later only. */
static const struct {
        unsigned flags, features;
} ring_modes[] = {
        {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_COOP_TASKRUN
                        | IORING_SETUP_NO_SQARRAY,
         IORING_FEAT_NO_IOWAIT                                                              },
        {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_NO_SQARRAY, 0},
        {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN,                           0},
        {IORING_SETUP_COOP_TASKRUN,                                                        0},
        {0,                                                                                0},
};

static int map_ring(struct io_uring *ring, int fd, struct io_uring_params *params, unsigned features)
{
        int r;

        if ((params->features & features) != features)
                return -EINVAL;
        r = io_uring_queue_mmap(fd, params, ring);
        if (r < 0)
                return r;
        /* liburing 2.3 sets these fields; 2.9 leaves them to the caller */
        ring->ring_fd = ring->enter_ring_fd = fd;
        ring->flags = params->flags;
        ring->features = params->features;
        if (!(params->flags & IORING_SETUP_NO_SQARRAY))
                for (unsigned i = 0; i < params->sq_entries; i++)
                        ring->sq.array[i] = i;
        return 0;
}

/* Return -EINVAL if this kernel has no ring with these flags and features. */
static int open_as(
        struct io_uring *ring, unsigned submissions, unsigned completions, unsigned flags, unsigned features)
{
        struct io_uring_params params = {
                .flags = flags | IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP
                         | IORING_SETUP_SUBMIT_ALL,
                .cq_entries = completions,
        };
        int fd = io_uring_setup(submissions, &params), r;

        if (fd < 0)
                return fd;
        r = map_ring(ring, fd, &params, features);
        if (r < 0)
                (void)close(fd);
        return r;
}

int io_ring_open(struct io_uring *ring, unsigned submissions, unsigned completions)
{
        int r = -EINVAL;

        for (size_t i = 0; r == -EINVAL && i < ARRAY_SIZE(ring_modes); i++)
                r = open_as(ring, submissions, completions, ring_modes[i].flags, ring_modes[i].features);
        if (r < 0)
                return r;
        /* Saves a look-up of the ring's descriptor in every system call; older kernels do without. */
        (void)io_uring_register_ring_fd(ring);
        return 0;
}

/* The shared library of liburing 2.3 lacks the functions for these two operations (they are in its map from 2.4 on). */
static int register_with(
        const struct io_uring *ring, unsigned operation, const void *argument, unsigned count)
{
        return syscall(SYS_io_uring_register, ring->ring_fd, operation, argument, count) < 0 ? -errno : 0;
}

int io_ring_set_file(const struct io_uring *ring, unsigned place, int fd)
{
        const struct io_uring_files_update update = {.offset = place, .fds = (uintptr_t)&fd};

        return register_with(ring, IORING_REGISTER_FILES_UPDATE, &update, 1);
}

static const struct {
        uint8_t operation;
        unsigned extra; /* enum io_ring_extra; 0: every ring has it */
} operations[] = {
        {IORING_OP_URING_CMD,    0              },
        {IORING_OP_READ,         0              },
        {IORING_OP_WRITE,        0              },
        {IORING_OP_READ_FIXED,   0              },
        {IORING_OP_WRITE_FIXED,  0              },
        {IORING_OP_FSYNC,        0              },
        {IORING_OP_FALLOCATE,    0              },
        {IORING_OP_TIMEOUT,      0              },
        {IORING_OP_NOP,          0              },
        {IORING_OP_POLL_ADD,     IO_RING_POLLS  },
        {IORING_OP_SEND,         IO_RING_SENDS  },
        {IORING_OP_RECV,         IO_RING_SENDS  },
        {IORING_OP_ASYNC_CANCEL, IO_RING_CANCELS},
};

int io_ring_start(struct io_uring *ring, bool fixed_files, unsigned extras)
{
        /* Each ring may register what its end needs. Without any such rule, newer kernels would restrict no
         * registration. */
        struct io_uring_restriction rules[4 + ARRAY_SIZE(operations)] = {
                {.opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED,
                 .sqe_flags = IOSQE_FIXED_FILE | IOSQE_ASYNC | IOSQE_BUFFER_SELECT                         },
                {.opcode = IORING_RESTRICTION_SQE_FLAGS_REQUIRED,
                 .sqe_flags = fixed_files ? IOSQE_FIXED_FILE : 0                                           },
                {.opcode = IORING_RESTRICTION_REGISTER_OP,        .register_op = IORING_UNREGISTER_RING_FDS},
        };
        unsigned count = 3;
        int r;

        if (extras & IO_RING_SETS_FILES)
                rules[count++] = (struct io_uring_restriction){.opcode = IORING_RESTRICTION_REGISTER_OP,
                        .register_op = IORING_REGISTER_FILES_UPDATE};
        for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
                if ((operations[i].extra & ~extras) == 0)
                        rules[count++] = (struct io_uring_restriction){
                                .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = operations[i].operation};
        r = register_with(ring, IORING_REGISTER_RESTRICTIONS, rules, count);
        return r < 0 ? r : register_with(ring, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
}

void io_ring_close(struct io_uring *ring)
{
        io_uring_queue_exit(ring);
}

static unsigned hand_over(struct io_uring_sq *sq)
{
        sq->sqe_head = sq->sqe_tail;
        io_uring_smp_store_release(sq->ktail, sq->sqe_tail);
        return sq->sqe_tail - *sq->khead;
}

/* The index of a registered descriptor is never equal to the descriptor: the numbers of the standard streams are in
 * use. */
static unsigned registered(const struct io_uring *ring)
{
        return ring->enter_ring_fd != ring->ring_fd ? IORING_ENTER_REGISTERED_RING : 0;
}

/* A queue always has fetches in flight. Without this flag the kernel would count a thread that waits only for them as
 * waiting for a disk, so that an idle disk would raise the machine's iowait and io pressure. */
static unsigned without_iowait(const struct io_uring *ring)
{
        return ring->features & IORING_FEAT_NO_IOWAIT ? IORING_ENTER_NO_IOWAIT : 0;
}

int io_ring_submit(struct io_uring *ring)
{
        unsigned count = hand_over(&ring->sq);

        if (count == 0)
                return 0;
        return io_uring_enter2((unsigned)ring->enter_ring_fd, count, 0, registered(ring), NULL, 0);
}

int io_ring_submit_and_wait(struct io_uring *ring, unsigned count, const struct __kernel_timespec *timeout)
{
        struct io_uring_getevents_arg argument = {.ts = (uintptr_t)timeout};
        unsigned flags = registered(ring) | without_iowait(ring) | IORING_ENTER_GETEVENTS
                         | (timeout ? IORING_ENTER_EXT_ARG : 0);

        return io_uring_enter2((unsigned)ring->enter_ring_fd, hand_over(&ring->sq), count, flags,
                timeout ? (sigset_t *)(void *)&argument : NULL, timeout ? sizeof(argument) : 0);
}
