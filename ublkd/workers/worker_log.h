/* SPDX-License-Identifier: MIT */
/* What a worker writes to its stdout and stderr: a pipe of its own, whose lines ublkd writes to its log.
 *
 * Each line has the name of the device and the pid of the worker before it, control characters are '?', a line that is
 * too long is cut off, and what a worker writes beyond a rate is counted, and reported once. The pipe never blocks the
 * worker: what has no room in it is lost. The read end is not kept across a restart of ublkd: what an adopted worker
 * writes is lost. Runs on the supervisor's loop, after everything else that there is to do. */
#pragma once

#include <sys/types.h>
#include <systemd/sd-event.h>

enum {
        WORKER_LOG_LINE_MAX = 1024, /* bytes */
        WORKER_LOG_BURST = 20,      /* lines at once */
};

struct worker_log;

/* Make a pipe. *ret_fd: its write end, which the caller owns. Return 0 or -errno. */
int worker_log_new(sd_event *event, struct worker_log **ret, int *ret_fd);
/* Write what is left in the pipe, and close it. NULL is fine. Return NULL. */
struct worker_log *worker_log_free(struct worker_log *log);

/* The worker of this pid writes to the pipe. log: NULL is fine. */
void worker_log_set_pid(struct worker_log *log, pid_t pid);
/* It is the worker of this device from now on. On ENOMEM its lines have no name. log: NULL is fine. */
void worker_log_set_device(struct worker_log *log, const char *device);
