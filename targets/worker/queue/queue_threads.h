/* SPDX-License-Identifier: MIT */
/* The threads that serve: one per hardware queue. They signal the main thread through an eventfd. */
#pragma once

#include "targets/worker/disk/disk.h"
#include "targets/worker/queue/shared.h"

struct queue_threads;

enum queue_threads_state {
        QUEUE_THREADS_STARTING, /* some have not fetched yet */
        QUEUE_THREADS_FETCHED,  /* all have */
        QUEUE_THREADS_LEFT, /* each has answered what it had begun, after queue_threads_leave(): end the process */
        QUEUE_THREADS_GONE,       /* the driver took every queue away; all have ended */
        QUEUE_THREADS_FAILED,     /* one cannot go on: end the process */
        QUEUE_THREADS_PRIVILEGED, /* one cannot give up its privileges: the same */
};

/* Start the threads of `disk` (which must outlive them) on /dev/ublkcN, open as device_fd, which may be
 * closed as soon as all have fetched. Each has its own table of descriptors, if there is memory for it: what the caller
 * opens or closes after this call is the caller's alone. cpus: where they run, or NULL; then queue_cpus, as in GO, which must
 * outlive them. Of a disk with kept memory, none fetches before all have started their queues, and disk_started() is called
 * then. Return 0 or -errno; after an error end the process. */
int queue_threads_start(struct disk *disk, const struct shared *shared, const struct data_route *route,
        int device_fd, const cpu_set_t *cpus, const char *queue_cpus, struct queue_threads **ret);
/* Join the threads and free their memory. Only in state GONE. NULL is fine. Return NULL. */
struct queue_threads *queue_threads_free(struct queue_threads *threads);

/* Return the way to the first queue for orders of actions; NULL: the target has no verbs. Valid as long as the threads. */
struct action_port *queue_threads_actions(const struct queue_threads *threads);

/* Return a descriptor that is readable after a change of state, until queue_threads_state() is called. */
int queue_threads_fd(const struct queue_threads *threads);
/* Return the state of all threads. In states FAILED and PRIVILEGED, *ret_error is the -errno of the first that
 * failed, and *ret_what a phrase for what it was doing. */
enum queue_threads_state queue_threads_state(
        struct queue_threads *threads, int *ret_error, const char **ret_what);
/* Have all queues finish the requests that they have begun, and begin no others. Only once, and after all have fetched. */
void queue_threads_leave(struct queue_threads *threads);
/* Return whether a request was served. */
bool queue_threads_served(const struct queue_threads *threads);
