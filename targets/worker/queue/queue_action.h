/* SPDX-License-Identifier: MIT */
/* The coroutine of the first queue that carries out actions of the target (targets/target_action.h).
 *
 * A queue whose target has no verbs has none, and no stack for it. Nothing here is on the way of a request. On the thread
 * of the queue. */
#pragma once

#include "targets/target_action.h"
#include "targets/worker/io/io_loop.h"
#include "targets/worker/queue/action_port.h"
#include "targets/worker/queue/throttle.h"

/* Zeroed: there is none. */
struct queue_action {
        struct target_action action; /* first: what targets have leads back */
        struct action_port *port;    /* NULL: the target has no verbs, or this is not its first queue */
        struct throttle *throttle;
        uint32_t max_io_size; /* bytes, of a request: the share that it takes at a time */
        int *failure;         /* the owner's: an error after which the queue cannot go on */
        int orders;           /* what an entry calls port->orders */
        uint64_t orders_read; /* from it */
        uint64_t next_at;     /* CLOCK_MONOTONIC, in ns: by its own rate it reads no sooner */
        unsigned reads;       /* how many have begun; odd: one is under way */
        unsigned reads_seen;  /* at the last look */
        uint64_t id;          /* of the action that is carried out; 0: none */
        bool runs, ends;
};

/* Return how many stacks io_loop_init() has to reserve for it. */
unsigned queue_action_stacks(const struct target_device *device, unsigned index);
/* Set it up: after io_loop_init(), before io_loop_start(). port: NULL as the target has no verbs. Return 0 or -errno. */
int queue_action_open(struct queue_action *self, struct io_loop *loop, struct action_port *port,
        struct throttle *throttle, uint32_t max_io_size, int *failure);
/* Begin the coroutine, before the first request. Return 0 or -errno. */
int queue_action_begin(struct queue_action *self);
/* End what it does, after the last request, and wait for that. turn(): as wait_room_stop() has it. Return 0 or -errno. */
int queue_action_stop(struct queue_action *self, int (*turn)(struct io_loop *loop, bool wait));

/* A second has passed: return whether a read that was under way then still is. */
bool queue_action_is_late(struct queue_action *self);
/* Return whether a read is under way. */
static inline bool queue_action_reads(const struct queue_action *self)
{
        return self->reads % 2 != 0;
}
