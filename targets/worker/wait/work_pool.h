/* SPDX-License-Identifier: MIT */
/* A few threads of a worker that run what would hold up a queue.
 *
 * Work waits in one line, first come, first served, and lies on the stacks of the coroutines that wait for
 * it: so there are no more of it than coroutines, and nothing is allocated. What is done goes to the port of
 * its queue, which has an eventfd. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stdbool.h>

struct work_pool;
struct work_port;

enum work_state { WORK_WAITS, WORK_RUNS, WORK_DONE };

struct work_item {
        int (*run)(void *argument);
        void *argument;
        int result; /* what run() returned */
        struct work_port *port;
        struct work_item *next;
        enum work_state state; /* of the pool */
};

/* Start `threads` threads for `ports` queues. Each thread calls enter(argument) first: 0, or -errno, which is
 * the result of this function. Return 0 or -errno, with no thread left. */
int work_pool_new(unsigned threads, unsigned ports, int (*enter)(void *argument), void *argument,
        struct work_pool **ret);
/* End the threads. No work may be left. NULL is fine. Return NULL. */
struct work_pool *work_pool_free(struct work_pool *pool);
DEFINE_CLEANUP(struct work_pool, work_pool_free);

/* Return the port of a queue, by its index. The rest is called on the thread of that queue. */
struct work_port *work_pool_port(struct work_pool *pool, unsigned index);
/* Return the descriptor that is readable, as an eventfd, when there may be work that is done. The pool owns
 * it. */
int work_port_fd(const struct work_port *port);
/* Put an item into the line. It stays at its place until work_port_take() has returned it, or _withdraw()
 * true. */
void work_port_submit(struct work_port *port, struct work_item *item);
/* Take an item out of the line. Return false: it has begun, and will come from work_port_take(). */
bool work_port_withdraw(struct work_port *port, struct work_item *item);
/* Return all that is done, linked by `next`, in the order in which it ended. */
struct work_item *work_port_take(struct work_port *port);
