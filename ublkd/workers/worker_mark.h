/* SPDX-License-Identifier: MIT */
/* Which process is the worker of a device: a note in the runtime directory, for a ublkd that finds a worker whose
 * socket does not answer. */
#pragma once

#include "ublkd/cgroups/worker_groups.h"
#include "ublkd/runtime/runtime_dir.h"

#include <sys/types.h>

/* Replace the note. pidfd: of the process. Return 0 or -errno. On failure there is no note of that process. */
int worker_mark_write(struct runtime_dir *dir, const char *uid, pid_t pid, int pidfd);
/* Compare a living process with the note. Return 1: the note names it; 0: the note names another process;
 * -ENOENT: there is no note; other -errno. Before Linux 6.9 the pid alone is compared. */
int worker_mark_compare(struct runtime_dir *dir, const char *uid, pid_t pid, int pidfd);
/* Find the process of the note. groups: of workers, for kernels that cannot distinguish two processes with one pid
 * (before Linux 6.9): the process must be in a group of its own; NULL: it is not found there. Return a pidfd of it, which
 * the caller closes, and its pid; -ENOENT: there is no note, or that process is dead; other -errno. */
int worker_mark_find(
        struct runtime_dir *dir, const struct worker_groups *groups, const char *uid, pid_t *ret_pid);
