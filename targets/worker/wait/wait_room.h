/* SPDX-License-Identifier: MIT */
/* What a queue reserves for a target that declares waits (target_desc.waits), and its coroutines of the
 * background.
 *
 * A queue whose target declares none has no such room (io_loop.waits is NULL), no stack and no thread for it.
 * On the thread of the queue. */
#pragma once

#include "targets/target_wait.h"
#include "targets/worker/wait/scope.h"
#include "targets/worker/wait/work_pool.h"

/* Return how many stacks io_loop_init() has to reserve beside one for each of `depth` requests. */
unsigned wait_room_stacks(const struct target_device *device, unsigned index, unsigned depth);

/* Reserve the rest. After io_loop_init() and before start_queue(). work: the threads of the worker; NULL if
 * the target declares none. failure: outlives the room, and becomes a -errno after which requests may not
 * end: the owner of the loop looks at it in each round, and gives the queue up. Return 0 or -errno; close it
 * in any case. */
int wait_room_open(struct io_loop *loop, unsigned depth, struct work_pool *work, int *failure);
/* Free it, before the loop. No coroutine of the background may run. */
void wait_room_close(struct io_loop *loop);

/* Begin the coroutines of the background: each runs until it first suspends. After io_loop_start(), before
 * the first request. Return 0 or -errno: the loop is unusable. */
int wait_room_run(struct io_loop *loop);
/* Ask them to stop, one after the other, and wait for each. After the last request. turn(): submit, take the
 * completions (wait: until there is one) and run what is ready; return 0, or -errno, which ends this. */
int wait_room_stop(struct io_loop *loop, int (*turn)(struct io_loop *loop, bool wait));
