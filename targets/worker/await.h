/* One io_uring operation, one return value: the building block beneath the await_*() of target.h. */
#pragma once

#include "targets/worker/io_loop.h"

/* Inside a coroutine of `loop`: a free submission entry, for the operation to be filled in. Suspends while
 * the submission queue is full. */
struct io_uring_sqe *await_sqe(struct io_loop *loop);
/* Waits for the operation that was filled into `sqe`, which must be the last entry taken. Returns its result.
 */
int await_operation(struct io_loop *loop, struct io_uring_sqe *sqe);
/* Lets `microseconds` pass for this coroutine only. */
void await_pause(struct io_loop *loop, unsigned microseconds);
