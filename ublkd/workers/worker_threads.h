/* SPDX-License-Identifier: MIT */
/* What the threads of a worker do, as /proc shows it. */
#pragma once

#include "ublkd/plan/progress.h"

#include <sys/types.h>

/* Read whether the process is stopped, by a signal or a debugger. proc: "/proc", or another tree in tests. The caller
 * knows that the process lives. Never waits. Return 1, 0 or -errno. */
int worker_process_stopped(const char *proc, pid_t pid);
/* Read whether all threads of the process are exiting, or will when the call that they are in returns: SIGKILL is pending
 * for them, or they have taken it. Of a worker whose channel was closed by its exit, all are: the kernel ends them
 * together. proc, and never waits: as above. Return 1, 0 or -errno (it is gone). */
int worker_process_exiting(const char *proc, pid_t pid);

/* Fill `thread` and `cpu_usec` of the queues from the threads that are named "queue-N"; a queue without one stays as it
 * was. Never waits. Return 0 or -errno. */
int worker_threads_look(const char *proc, pid_t pid, struct progress_queue *queues, unsigned count);
