/* SPDX-License-Identifier: MIT */
/* The threads that serve: one per hardware queue. They signal the main thread through an eventfd. */
#pragma once

#include "targets/worker/disk/disk.h"
#include "targets/worker/queue/shared.h"

struct queue_threads;

enum queue_threads_state {
        QUEUE_THREADS_STARTING, /* some have not fetched yet */
        QUEUE_THREADS_FETCHED,  /* all have */
        QUEUE_THREADS_GONE,     /* the driver took every queue away; all have ended */
        QUEUE_THREADS_FAILED,   /* one cannot go on: end the process */
};

/* Starts the threads of `disk` (which must outlive them) on /dev/ublkcN, open as device_fd, which may be
 * closed as soon as all have fetched. cpus: where they run, or NULL. queue_cpus (must outlive them): else, as
 * in GO. 0 or -errno; after an error end the process. */
int queue_threads_start(struct disk *disk, const struct shared *shared, const struct data_route *route,
        int device_fd, const cpu_set_t *cpus, const char *queue_cpus, struct queue_threads **ret);
/* Joins them. Only in state GONE. NULL is fine. */
struct queue_threads *queue_threads_free(struct queue_threads *threads);

/* Readable after a change of state, until queue_threads_state() is called. */
int queue_threads_fd(const struct queue_threads *threads);
/* *ret_error: in state FAILED, -errno of the first that failed. *ret_what: what it was doing,
 * for a sentence. */
enum queue_threads_state queue_threads_state(
        struct queue_threads *threads, int *ret_error, const char **ret_what);
/* True once a request was served. */
bool queue_threads_served(const struct queue_threads *threads);
