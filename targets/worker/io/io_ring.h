/* SPDX-License-Identifier: MIT */
/* A queue's way into the kernel: liburing's rings, with entries that are handed over by us.
 *
 * Since Linux 6.6 a ring can do without its array of indices (IORING_SETUP_NO_SQARRAY); on older ones the
 * array is written once, because entries are always used in their order. liburing 2.3 knows neither, and
 * would write the array with each submission. So none of its submitting functions may be used on these rings.
 * Everything here belongs to the one thread that opened the ring. */
#pragma once

#include <liburing.h>
#include <stdbool.h>

#pragma GCC poison io_uring_submit io_uring_submit_and_wait io_uring_submit_and_get_events
#pragma GCC poison io_uring_submit_and_wait_timeout io_uring_queue_init io_uring_queue_init_params

/* Open a ring for `submissions` entries and `completions` at a time, in the best way that the kernel has. It
 * takes registrations, and no entries before io_ring_start(). Return 0 or -errno. */
int io_ring_open(struct io_uring *ring, unsigned submissions, unsigned completions);
/* Close a ring that is open. */
void io_ring_close(struct io_uring *ring);

/* Put a descriptor into a place of the table of fixed files, or empty it (-1). Return 0 or -errno. */
int io_ring_set_file(const struct io_uring *ring, unsigned place, int fd);

/* What a ring may do beyond what every worker's does. */
enum io_ring_extra {
        IO_RING_POLLS = 1 << 0,
        IO_RING_SENDS = 1 << 1,   /* and receives */
        IO_RING_CANCELS = 1 << 2, /* operations of its own */
        IO_RING_SETS_FILES = 1 << 3,
};

/* Let the ring take entries, of the operations that a worker has and `extras` (enum io_ring_extra) and no
 * others; nothing else can be registered with it any more. fixed_files: each entry must have
 * IOSQE_FIXED_FILE, also one that is about no file. For good. Return 0 or -errno. */
int io_ring_start(struct io_uring *ring, bool fixed_files, unsigned extras);

/* Submit all entries that are ready. Return how many the kernel took, or -errno: then it took none. */
int io_ring_submit(struct io_uring *ring);
/* Submit as io_ring_submit(), and look for completions; wait until there are `count` of them (0: do not
 * wait), or until `timeout` has passed (NULL: without end), which is -ETIME. */
int io_ring_submit_and_wait(struct io_uring *ring, unsigned count, const struct __kernel_timespec *timeout);

/* Clear an entry as io_uring_prep_*() expects: since liburing 2.4 they leave to io_uring_get_sqe() the fields
 * that most operations have no use for. */
static inline void io_ring_clear(struct io_uring_sqe *sqe)
{
#ifdef IO_URING_VERSION_MAJOR /* 2.4 and later say so */
        io_uring_initialize_sqe(sqe);
#else
        (void)sqe;
#endif
}

/* Return a free entry, or NULL. It has its former content: see io_ring_clear(). */
static inline struct io_uring_sqe *io_ring_sqe(struct io_uring *ring)
{
        struct io_uring_sq *sq = &ring->sq;
        unsigned tail = sq->sqe_tail;

        /* The head moves only while we are in the kernel: no SQPOLL here. */
        if (__builtin_expect(tail - *sq->khead == sq->ring_entries, 0))
                return NULL;
        sq->sqe_tail = tail + 1;
        return &sq->sqes[tail & sq->ring_mask];
}

/* Give back the entry that io_ring_sqe() returned last. Nothing was submitted meanwhile. */
static inline void io_ring_return_sqe(struct io_uring *ring)
{
        ring->sq.sqe_tail--;
}
