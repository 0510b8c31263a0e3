/* SPDX-License-Identifier: MIT */
/* One io_uring operation, one return value: the building block beneath the await_*() of target.h. */
#pragma once

#include "targets/worker/io/io_loop.h"

/* Return a free submission entry, for the caller to fill in. In a coroutine of `loop`; suspends while the
 * submission queue is full. */
struct io_uring_sqe *await_sqe(struct io_loop *loop);
/* Wait for the operation that was filled into `sqe`, which must be the last entry taken. Suspends. Return its
 * result. */
int await_operation(struct io_loop *loop, struct io_uring_sqe *sqe);

/* How often in a row an operation had to be repeated. */
struct retry {
        unsigned count;
};
/* Return whether `result` (-EAGAIN, -EINTR) asks for the same operation again; suspends as long as that
 * takes. */
bool retry_wanted(struct io_loop *loop, struct retry *retry, int result);

/* A read or write of a file of the loop. */
struct transfer {
        unsigned file; /* its number there */
        int rw_flags;
        bool writes;
        bool fixed; /* the memory is registered buffer `buffer`, and `address` an offset in it */
        uint16_t buffer;
        uint32_t length; /* bytes */
        uint64_t address, offset;
};
/* Transfer all of it. Suspends. Return `length` or -errno, as await_read() and await_write() of target.h. */
int await_transfer(struct io_loop *loop, const struct transfer *transfer);

/* Suspend this coroutine for `microseconds`. */
void await_pause(struct io_loop *loop, unsigned microseconds);
