/* SPDX-License-Identifier: MIT */
/* When a worker gives up which right. os/sandbox.h, os/landlock.h and os/call_filter.h describe how.
 *
 * The walls go up in this order, each as soon as nothing needs what it takes away: at the start of the process,
 * which is before its device is known; when its target is known; when its store is open; when /dev/ublkcN is, and no
 * other thread is there; for each queue, when its ring is ready and before it fetches; when all queues have fetched.
 * The first wall that cannot be built is noted, and the worker refuses to serve. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct walls {
        bool best_effort; /* serve although walls are missing; set before any other field */
        uint32_t user;    /* uid and gid to serve with; 0: keep the present ones */
        int network;      /* the network namespace of the host, until the target is known; or -errno */
        int files;        /* an empty mount namespace, until the store is open; or negative */
        bool connects;    /* the target needs the network */
        int error;        /* -errno of the first missing wall; 0: none is missing */
        const char *missing;
};

/* Keep the process from new privileges, and in namespaces of its own. Call at its start. */
void walls_begin(struct walls *walls);
/* Leave out the walls that would take what the target needs (enum target_need). Call it once, before the target opens
 * the store. */
void walls_fit_target(struct walls *walls, unsigned needs);
/* Leave all paths behind. Call when the store is open. */
void walls_leave_files(struct walls *walls);
/* Close every way to open something, and become `user`. Call before the first thread, which inherits both; each thread
 * keeps its capabilities until it drops them. */
void walls_close_access(struct walls *walls);
/* Note the result of a thread that dropped its capabilities: 0, or -errno. No thread serves with capabilities, also
 * with best effort. */
void walls_note_privileges(struct walls *walls, int result);
/* Drop what is left, after all queues have fetched and their threads have dropped their capabilities. The process writes
 * to no log but its own after this. */
void walls_close(struct walls *walls);
/* Build all walls at once, in a process that will not serve. A failure here would also occur in the next worker. */
void walls_rehearse(struct walls *walls);

/* Return whether the worker may serve. */
static inline bool walls_hold(const struct walls *walls)
{
        return walls->error == 0 || walls->best_effort;
}
