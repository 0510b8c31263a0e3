/* SPDX-License-Identifier: MIT */
/* The state of the worker's main thread: for main.c and what it is made of. */
#pragma once

#include "targets/worker/chan.h"
#include "targets/worker/disk/config.h"
#include "targets/worker/disk/disk.h"
#include "targets/worker/news.h"
#include "targets/worker/queue/queue_threads.h"
#include "targets/worker/walls.h"
#include "ublkd/proto/worker_msg.h"

enum exit_status {
        EXIT_LEFT = 0,
        EXIT_FAILED = 1,
        EXIT_USAGE = 2,
        STAY = -1,
        AWAY = -2, /* as EXIT_LEFT, at once: the driver takes back the requests that the queues still have */
};

struct worker {
        char *shown;                            /* argv[1], which ps(1) shows */
        size_t shown_room;                      /* without the last NUL */
        const char *name;                       /* of the device, for the log; NULL: not known yet */
        char name_of_disk[WORKER_NAME_MAX + 1]; /* from CONFIG */
        enum worker_stage stage;
        struct walls walls;
        struct chan chan;
        struct worker_config config;
        struct disk disk;
        struct shared shared;
        struct queue_threads *threads;
        struct news news;
        char *queue_cpus;                     /* from GO */
        int number;                           /* N of /dev/ublkcN, or -1 */
        struct data_route route;              /* with the number */
        int node_folder;                      /* /dev, or -1 */
        int node;                             /* /dev/ublkcN, as long as it is needed; or -1 */
        int64_t node_deadline, node_next_try; /* milliseconds; meaningful while the node is not open */
        int64_t lock_deadline, lock_next_try; /* likewise, while the lock is waited for */
};

/* Send a message to the supervisor. Each function of report.c returns 0, or -errno of chan_send(): it logs the
 * failure itself, and report_all() sends everything to the next supervisor. */
int report(struct worker *worker, const struct worker_msg *msg);
/* Report which store is open, with the descriptor that the supervisor keeps; or which was refused, without
 * one. */
int report_backing(struct worker *worker);
/* Report a store that another process has locked: the supervisor knows which devices it keeps that one for. */
int report_locked_backing(struct worker *worker);
int report_params(struct worker *worker);
/* Report all that a supervisor has to know, in order. */
void report_all(struct worker *worker);
/* Report why the worker leaves. Return its exit status. */
enum exit_status fail(struct worker *worker, const struct problem_list *problems);
/* Report why the worker leaves when `holder` keeps the store locked; 0: the holder is unknown. Return its
 * exit status. */
enum exit_status fail_locked(struct worker *worker, const struct problem_list *problems, pid_t holder);
/* Report one problem that makes the worker leave; error: -errno. Return its exit status. */
enum exit_status fail_with(struct worker *worker, int error, const char *reason, const char *sentence);
/* Report why the backend does not serve: `problems`; on ENOMEM and without problems one with that sentence. Return its exit
 * status. */
enum exit_status fail_backend(
        struct worker *worker, int error, const struct problem_list *problems, const char *sentence);
/* Report that others read the backing store: the worker serves beside them. */
void report_readers(struct worker *worker);
/* Report a wall that is missing, and leave. */
enum exit_status fail_unconfined(struct worker *worker);
/* Report it, and serve: --sandbox best-effort. Nothing is reported if no wall is missing. */
void report_missing_wall(struct worker *worker);

/* Read and write the messages of a start once, so that their pages are there before a recovery needs them (rehearsal.c). */
void worker_rehearse(void);

/* Take ACTION, in the stages READY and SERVING (action.c). */
void take_action(struct worker *worker, const struct worker_msg *msg);

/* ---- steps.c ---- */

/* Let ps(1) show this name, cut off where it has no room. */
void worker_show_name(struct worker *worker, const char *name);
/* Open the backend of CONFIG: from then on this process is the worker of one device. Set those descriptors to -1 that it
 * takes over. Each function here that returns an exit status returns STAY, or the status to exit with. */
enum exit_status worker_open(struct worker *worker, const struct worker_msg *msg, int *fds);
/* Take GO: lock the store, open the node of the disk, and start the queues. route: copied. */
void worker_begin_fetching(struct worker *worker, int number, const struct data_route *route);
/* Take the steps whose facts are there, and for which no message comes. */
enum exit_status worker_go_on(struct worker *worker);
/* Send news of the queues, and take the steps for which they have to be in some state. */
enum exit_status worker_look_at_queues(struct worker *worker);
/* Return the milliseconds until worker_go_on() has to be called; -1: an event comes before. */
int worker_time_left(const struct worker *worker);
/* Latch in the region that the store has been cut off, if it is. */
void worker_latch_cut(struct worker *worker);

/* ---- messages.c ---- */

/* Handle all messages that have come. */
enum exit_status worker_read_messages(struct worker *worker);
/* Accept the connection of another supervisor, and report all that it has to know. */
enum exit_status worker_take_call(struct worker *worker);
