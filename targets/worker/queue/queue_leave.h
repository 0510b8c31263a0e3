/* SPDX-License-Identifier: MIT */
/* Lets the queues of a worker leave: each finishes the requests that it has begun, and begins no others. The driver keeps
 * what it has handed over and the queue has not begun, and hands it to the next worker.
 *
 * A queue that has left turns on until the process ends: requests of other queues may need its coroutines. */
#pragma once

#include "targets/worker/io/io_loop.h"

#include <stdatomic.h>

/* From the main thread to all queues. */
struct leave_call {
        int fd;           /* an eventfd, one count for each queue; -1: none */
        int news;         /* an eventfd that wakes the main thread; not the call's */
        atomic_uint left; /* queues that have left */
};

/* On the thread of a queue. Zeroed: nothing calls it. */
struct queue_leave {
        struct leave_call *call;
        int file;         /* what an entry calls call->fd */
        uint64_t counter; /* read from it */
        bool wanted, reported;
};

/* Of the read of call->fd. */
#define USER_DATA_LEAVE (UINT64_C(2) << USER_DATA_KIND_BITS | USER_DATA_TICK)

/* Open the call, before the threads, which have its descriptor in their tables. Return 0 or -errno. */
int leave_call_open(struct leave_call *call, int news);
/* Close it, after the threads. */
void leave_call_close(struct leave_call *call);
/* On the main thread, once: ask `queues` queues to leave. */
void leave_call_send(const struct leave_call *call, unsigned queues);

/* Set it up: after io_loop_init(), before io_loop_start(). call: NULL if nothing calls the queue. Return 0 or -errno. */
int queue_leave_open(struct queue_leave *leave, struct io_loop *loop, struct leave_call *call);
/* Wait for the call, with an operation of the ring. Without room in the ring, nothing calls the queue. */
void queue_leave_await(struct queue_leave *leave, struct io_loop *loop);
/* Take the result of that operation. */
void queue_leave_called(struct queue_leave *leave, struct io_loop *loop, int result);
/* Report that the queue has left; once, also if it is called again. */
void queue_leave_report(struct queue_leave *leave);
