/* SPDX-License-Identifier: MIT */
/* One hardware queue: fetches its requests, has them performed, commits the answers.
 *
 * Everything here runs on one thread, which the driver remembers from the first FETCH: it accepts commits
 * from no other. */
#pragma once

#include "targets/target.h"
#include "targets/worker/queue/queue_leave.h"
#include "targets/worker/queue/shared.h"
#include "targets/worker/wait/work_pool.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/data_path.h"

#include <sched.h>
#include <stdatomic.h>

struct ublk_queue;

struct ublk_queue_setup {
        struct target_device *device; /* open, with its final size */
        const int *witnesses;         /* of struct disk, which outlives the queue */
        unsigned witness_count;
        unsigned index, depth;
        uint32_t max_io_size; /* bytes */
        struct data_route route;
        int command_fd;    /* /dev/ublkcN; see ublk_queue_needs_node() for when it may be closed */
        bool shares_table; /* of descriptors, with the main thread, which has links to supervisors there */
        const cpu_set_t *cpus; /* where kernel threads of the ring may run, or NULL: anywhere */
        atomic_bool *served;   /* set at the first request */
        const struct shared *shared;
        struct leave_call *leave; /* NULL: nothing calls the queue */
        struct work_pool *work;   /* of await_work(); NULL: the target declares no threads */
};

/* Return whether command_fd has to stay open until every queue is closed. Else the rings hold the file, and
 * it may be closed once every queue is open. The device must be open. */
bool ublk_queue_needs_node(const struct target_device *device, const struct data_route *route);

/* Allocate and map all that the queue needs, and start the target on it. Return 0 or -errno. */
int ublk_queue_open(const struct ublk_queue_setup *setup, struct ublk_queue **ret);
/* Close the queue, only before ublk_queue_fetch(), or after ublk_queue_run() has returned 0. NULL is fine.
 * Return NULL. */
struct ublk_queue *ublk_queue_close(struct ublk_queue *queue);
DEFINE_CLEANUP(struct ublk_queue, ublk_queue_close);

/* Offer every tag to the driver. Return 0; -errno: the driver refused, and only the end of the process takes
 * the tags back. */
int ublk_queue_fetch(struct ublk_queue *queue);

/* Serve until the driver has taken every tag back; after a call to leave, begin no request, and report when those that
 * have begun are answered. Return 0; -errno: something that cannot happen did, and
 * the queue is unusable: end the process, the kernel holds the requests for the next one. */
int ublk_queue_run(struct ublk_queue *queue);
