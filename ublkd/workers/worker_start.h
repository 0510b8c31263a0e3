/* SPDX-License-Identifier: MIT */
/* Starts worker processes, and keeps spares: processes that were started ahead of need, and wait for their CONFIG.
 * The next worker to be started takes one, so that a recovery does not wait for a process to begin. Others are
 * started when nothing has been for a second. There are spares only while there are workers. Runs on the
 * supervisor's loop. */
#pragma once

#include "ublkd/proto/worker_msg.h"

#include <systemd/sd-event.h>

struct group_limits;
struct worker_groups;
struct worker_log;
struct worker_start;

enum { WORKER_SPARES_MAX = 64 };

/* A worker's process, and our ends of its channel and of its log. */
struct worker_process {
        pid_t pid;
        int pidfd;
        int channel; /* CONFIG is on its way */
        struct worker_log *log;
};

/* What a worker gives up: targets/worker/walls.h. */
struct worker_confinement {
        bool best_effort; /* a worker that cannot be confined serves with the walls that it can have */
        /* The worker of /dev/ublkbN serves with the uid and gid first_user + N; N must be below
         * `users`. 0 users: with those of ublkd. */
        uint32_t first_user, users;
};

/* Create a starter, without a spare yet; it keeps one from the first worker on. program: a path, which outlives
 * this. confinement: NULL is one of zeroes. Return 0 or -errno. */
int worker_start_new(sd_event *event, const char *program, const struct worker_confinement *confinement,
        struct worker_start **ret);
/* Keep so many spares from now on: those that lack are started when all is calm, and those that are too many stay
 * until they are taken. count: WORKER_SPARES_MAX at most; 0: none. */
void worker_start_keep_spares(struct worker_start *start, unsigned count);
/* From now on start each process beside the groups of workers (worker_groups_open_rest()), and give each spare a control
 * group of its own, ahead of need. groups: outlives `start`. */
void worker_start_use_groups(struct worker_start *start, struct worker_groups *groups);
/* Return the control groups of workers; NULL: there are none. */
struct worker_groups *worker_start_groups(const struct worker_start *start);
/* Return 0 and the uid for the worker of that disk (0: its own), or -ERANGE. */
int worker_start_user(const struct worker_start *start, int number, uint32_t *ret);
/* Free the starter; the spares exit. NULL is fine. Return NULL. */
struct worker_start *worker_start_free(struct worker_start *start);

/* Return the path of the program of the workers. Valid as long as the caller keeps it: worker_start_new(). */
const char *worker_start_program(const struct worker_start *start);

/* Keep a descriptor of the network namespace of a dead worker (worker_network_open()) until no worker has started for a
 * second. fd: owned from now on; < 0: nothing. */
void worker_start_keep_network(struct worker_start *start, int fd);
/* Count one worker more, or (-1) one less. */
void worker_start_count(struct worker_start *start, int change);
/* Start a process, or take a spare, for the device in `config` (type CONFIG). fds stay the caller's. limits: whose bounds
 * hold the process before it gets its CONFIG, where there are control groups; NULL: none. May wait for the kernel's lock
 * of control groups, for no I/O. Return 0; -errno and nothing was started. */
int worker_start_run(struct worker_start *start, const struct worker_msg *config,
        const int fds[static _CONFIG_FD_MAX], const struct group_limits *limits, struct worker_process *ret);
