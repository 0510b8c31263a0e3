/* SPDX-License-Identifier: MIT */
/* Where a queue's thread runs, and that its memory is near. All of it is advice: a CPU that is offline or not
 * ours does not keep a queue from serving. */
#pragma once

#include <sched.h>
#include <stdbool.h>

enum { QUEUE_PLACE_NODES_MAX = 1024 };

/* Where a thread was before. */
struct queue_place {
        cpu_set_t cpus;
        unsigned long nodes[QUEUE_PLACE_NODES_MAX / (8 * sizeof(unsigned long))];
        int policy;
};

/* Move the calling thread to the CPUs of a queue, and let it allocate there from now on, whatever policy it
 * was started with. queue_cpus: as in GO; NULL: the thread stays where it is. */
void queue_place_take(const char *queue_cpus, unsigned index);

/* Whether this machine has several nodes that the process may use. */
bool queue_place_matters(void);

/* Save where the thread is before it creates threads, whose stacks are first written to by their creator.
 * Return true if it matters; then queue_place_restore() must follow. */
bool queue_place_save(struct queue_place *ret);
void queue_place_restore(const struct queue_place *place);
