/* SPDX-License-Identifier: MIT */
/* In place of worker processes, under the real ublkd/workers/worker_proc.c: the supervisor starts none, and has
 * no socket and no pidfd. Descriptors of these are numbers that only the functions here know. on_worker_*, which
 * the test defines, receive what the supervisor does to a process; stand_in_* do what a process does. Nothing
 * happens by itself. */
#pragma once

#include "ublkd/cgroups/group_limits.h"
#include "ublkd/workers/worker_proc.h"

enum { STAND_IN_NOTHING = (1 << 28) - 1 }; /* a descriptor that can only be closed */

/* One process, as far as the supervisor listens to it. Zeroed at first. */
struct worker_stand_in {
        struct worker_proc *proc;      /* NULL: no supervisor has it */
        sd_event_io_handler_t message; /* NULL: no supervisor reads its channel */
        sd_event_io_handler_t death;
        sd_event_source *death_source;
        struct worker_msg *incoming;      /* to be received now */
        int incoming_fds[STORE_LIST_MAX]; /* and then -1 */
};

/* ---- by the test; index: of the process ---- */

/* Of the last start, as worker_start_run() takes them; zeroed: none. */
extern struct group_limits worker_stand_in_limits;
/* Return NULL: there is no such process (any more). */
struct worker_stand_in *worker_stand_in_at(int index);
pid_t worker_stand_in_pid(int index);
/* The supervisor starts a process. stores: STORE_LIST_MAX of CONFIG, those before the first -1. 0 and its index, or -errno. */
int on_worker_start(const struct worker_msg *config, const int *stores, int *ret_index);
/* The supervisor connects to the worker of `uid`. 0 and its index, or -errno. */
int on_worker_connect(const char *uid, int *ret_index);
/* The supervisor looks for the worker of `uid` that does not listen. 0 and its index, or -errno. */
int on_worker_marked(const char *uid, int *ret_index);
/* 0 or -errno of worker_msg_send(). */
int on_worker_sent(int index, const struct worker_msg *msg);
void on_worker_killed(int index);
/* The supervisor has closed the channel. */
void on_worker_closed(int index);
/* The supervisor has freed what it knew of the process. */
void on_worker_freed(int index);
/* How it ended; false: unknown. */
bool on_worker_waited(int index, siginfo_t *ret);
/* Return whether the process is exiting, or is gone. */
bool on_worker_exiting(pid_t pid);

/* ---- by the process ---- */

/* Send a message, and `fd` beside it, which is taken over, or -1. */
void stand_in_sends(int index, const struct worker_msg *msg, int fd);
/* The same with `count` descriptors beside it. */
void stand_in_sends_fds(int index, const struct worker_msg *msg, const int *fds, unsigned count);
/* Close the channel. */
void stand_in_leaves(int index);
/* Be seen dead. */
void stand_in_dies(int index);
/* Return whether the supervisor reads the channel. */
bool stand_in_is_read(int index);
