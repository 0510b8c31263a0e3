/* SPDX-License-Identifier: MIT */
/* One worker process, spawned or adopted: its pidfd, its messages, how it died. Runs on the supervisor's
 * loop. */
#pragma once

#include "ublkd/proto/worker_msg.h"
#include "ublkd/runtime/runtime_dir.h"
#include "ublkd/workers/worker_death.h"
#include "ublkd/workers/worker_start.h"
#include "ublkd/workers/worker_store.h"

#include <systemd/sd-event.h>

struct worker_proc;

/* Something about it changed: its stage, its parameters, or it died (a HELLO alone only of an adopted one).
 * Called from the loop (what it sent at priority -20, its death at -10), never from within a call below; what
 * such a call changes is not reported. May free it. */
typedef void (*worker_proc_changed)(void *userdata, struct worker_proc *worker);

/* Start a worker for the device in `config` (type CONFIG, copied) in the background. stores: STORE_LIST_MAX descriptors of the
 * stores that the disk is on, which stay the caller's, those before the first -1: with a list, of its entries that have one; NULL:
 * none. limits: as worker_start_run() takes them. `starter` outlives it. Never waits.
 * Return 0 or -errno. */
int worker_proc_spawn(sd_event *event, struct runtime_dir *dir, struct worker_start *starter,
        const struct worker_msg *config, const int *stores, const struct group_limits *limits,
        worker_proc_changed changed, void *userdata, struct worker_proc **ret);
/* Connect to a worker that serves the device `uid` already. Return 0; -ENOENT: there is none; -ENOPROTOOPT:
 * this kernel cannot name the process that listens (before Linux 6.5); other -errno. Until its HELLO came its
 * stage is WORKER_STAGE_OPENING.
 *
 * A worker that lives and has closed its socket is unreachable: no HELLO will come. The caller decides whether it is
 * the one that serves the disk. */
int worker_proc_adopt(sd_event *event, struct runtime_dir *dir, struct worker_start *starter,
        const char *name, const char *uid, worker_proc_changed changed, void *userdata,
        struct worker_proc **ret);
/* Free the handle; the process lives on unless it is dead. A child that still lives then is not reaped before
 * ublkd ends. NULL is fine. Return NULL. */
struct worker_proc *worker_proc_free(struct worker_proc *worker);

/* Return the pid of the process. It may be dead, and not reaped yet. */
pid_t worker_proc_pid(const struct worker_proc *worker);
/* Return the pidfd, which stays the worker's. */
int worker_proc_pidfd(const struct worker_proc *worker);
/* Return whether worker_proc_adopt() found it, so that it is not a child of this ublkd. */
bool worker_proc_adopted(const struct worker_proc *worker);
/* Return whether it lives and does not listen: see worker_proc_adopt(). */
bool worker_proc_is_unreachable(const struct worker_proc *worker);
/* Return how far it is. */
enum worker_stage worker_proc_stage(const struct worker_proc *worker);
/* Return the epoch, and the count of restarts, that it was started for: from CONFIG or HELLO. */
uint16_t worker_proc_epoch(const struct worker_proc *worker);
uint32_t worker_proc_restart(const struct worker_proc *worker);
/* Return the version of the program, from HELLO; "" before it. Valid as long as the worker. */
const char *worker_proc_version(const struct worker_proc *worker);
/* Return the number of its disk, from GO or HELLO; -1: none yet. */
int worker_proc_number(const struct worker_proc *worker);
/* Return when it was started, CLOCK_REALTIME in microseconds; 0: unknown (an adopted one reports it in its
 * HELLO, an older program never). */
uint64_t worker_proc_started_at(const struct worker_proc *worker);
/* Return the parameters of its disk; NULL before PARAMS. Valid as long as the worker. */
const struct disk_params *worker_proc_params(const struct worker_proc *worker);
/* Return why it failed, from FAILED; may be empty. */
const struct problem_list *worker_proc_problems(const struct worker_proc *worker);
/* Return the process that keeps the store locked, from FAILED; 0: unknown, or that is not why it failed. */
pid_t worker_proc_holder(const struct worker_proc *worker);
/* Return the stores that it has opened, with the one that it has refused; NULL before BACKING. Valid as long as the worker. */
const struct worker_stores *worker_proc_stores(const struct worker_proc *worker);
/* Return whether it serves a tree with a list of stores, as far as that is known: from CONFIG or BACKING. */
bool worker_proc_has_list(const struct worker_proc *worker);
/* Return the descriptor of one of these stores, which the caller owns from now on; -1: there is none (any more). */
int worker_proc_take_store(struct worker_proc *worker, unsigned number);
/* Return the problems of NOTICE since the caller has cleared the list last. */
struct problem_list *worker_proc_notices(struct worker_proc *worker);
/* Return how it ended; NULL while it lives. */
const struct worker_death *worker_proc_death(const struct worker_proc *worker);
/* Return when its death was seen, CLOCK_MONOTONIC in microseconds; 0 while it lives. */
uint64_t worker_proc_died_at(const struct worker_proc *worker);

/* Send GO, or with worker_proc_live() LIVE. Return 0 or -errno of worker_msg_send(). The stage is then
 * WORKER_STAGE_FETCHING, or _SERVING. */
int worker_proc_go(
        struct worker_proc *worker, int number, const struct data_route *route, const char *queue_cpus);
int worker_proc_live(struct worker_proc *worker);
/* Ask it to serve `size` bytes. Its parameters show whether it does, its refusal why not. Return 0;
 * -EOPNOTSUPP: it is an older program; -EFBIG: nothing can have that size; -errno of worker_msg_send(). */
int worker_proc_grow(struct worker_proc *worker, uint64_t size);
/* Ask it to begin an action of its target. What becomes of it is in the region (proto/region_action.h). Return 0;
 * -EOPNOTSUPP: it is an older program; -errno of worker_msg_send(). */
int worker_proc_act(struct worker_proc *worker, uint64_t id, const char *verb, const char *arguments);
/* Return whether its program knows of actions. */
bool worker_proc_acts(const struct worker_proc *worker);
/* Return why it has not grown when it was asked last; empty: it has, or has not answered yet. */
const struct problem_list *worker_proc_refusal(const struct worker_proc *worker);
/* Clear the refusal of an earlier request to grow, before the next request. */
void worker_proc_drop_refusal(struct worker_proc *worker);
/* Ask it to finish the requests that it has begun, to begin no others, and to exit. The stage is WORKER_STAGE_LEAVING.
 * Return 0; -EOPNOTSUPP: it is an older program; -errno of worker_msg_send(). */
int worker_proc_leave(struct worker_proc *worker);
/* Kill it with SIGKILL through the pidfd: by contract nothing acknowledged is lost. The stage is
 * WORKER_STAGE_LEAVING until its death, which is reported. */
void worker_proc_kill(struct worker_proc *worker);
/* Expect it to exit by itself, and kill it if it has not begun to after some seconds. The stage is
 * WORKER_STAGE_LEAVING. */
void worker_proc_expect_exit(struct worker_proc *worker);
/* Read whether it is exiting, or is gone: it needs no kill. Never waits. */
bool worker_proc_is_exiting(const struct worker_proc *worker);
/* Return whether it serves, has closed its channel and lives on: it has broken the protocol, would not grow, and would
 * not report its faults. The caller decides what that is worth. */
bool worker_proc_left_channel(const struct worker_proc *worker);
/* Kill it as worker_proc_kill(), for a reason that its death shows: a clause, "it …". */
void worker_proc_refuse(struct worker_proc *worker, const char *fault);
/* Return whether it was killed for what it sent. */
bool worker_proc_is_refused(const struct worker_proc *worker);
