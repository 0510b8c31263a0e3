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
 * Called from the loop (what it said at priority -20, its death at -10), never from within a call below; what
 * such a call changes is not reported. May free it. */
typedef void (*worker_proc_changed)(void *userdata, struct worker_proc *worker);

/* Starts a worker for the device in `config` (type CONFIG, copied) in the background. store: a descriptor of
 * the store that the disk is on, which stays the caller's; -1: none. `starter` outlives it. Never waits. 0 or
 * -errno. */
int worker_proc_spawn(sd_event *event, struct runtime_dir *dir, struct worker_start *starter,
        const struct worker_msg *config, int store, worker_proc_changed changed, void *userdata,
        struct worker_proc **ret);
/* Connects to a worker that serves the device `uid` already. 0; -ENOENT: there is none; -ENOPROTOOPT: this
 * kernel cannot name the process that listens (before Linux 6.5); other -errno. Until its HELLO came its
 * stage is WORKER_STAGE_OPENING. */
int worker_proc_adopt(sd_event *event, struct runtime_dir *dir, struct worker_start *starter,
        const char *name, const char *uid, worker_proc_changed changed, void *userdata,
        struct worker_proc **ret);
/* Free the handle; the process lives on unless it is dead. A child that still lives then is not reaped
 * before ublkd ends. NULL is fine. */
struct worker_proc *worker_proc_free(struct worker_proc *worker);

pid_t worker_proc_pid(const struct worker_proc *worker);
bool worker_proc_adopted(const struct worker_proc *worker);
enum worker_stage worker_proc_stage(const struct worker_proc *worker);
uint16_t worker_proc_epoch(const struct worker_proc *worker);
uint32_t worker_proc_restart(const struct worker_proc *worker); /* from CONFIG or HELLO */
/* Of the program, from HELLO; "" before it. Valid as long as the worker. */
const char *worker_proc_version(const struct worker_proc *worker);
int worker_proc_number(const struct worker_proc *worker); /* from GO or HELLO, or -1 */
/* CLOCK_REALTIME, microseconds; 0: unknown (an adopted one tells it in its HELLO, an older program never). */
uint64_t worker_proc_started_at(const struct worker_proc *worker);
const struct disk_params *worker_proc_params(const struct worker_proc *worker); /* NULL before PARAMS */
const struct problem_list *worker_proc_problems(
        const struct worker_proc *worker); /* from FAILED; may be empty */
/* The process that keeps the store locked, from FAILED; 0: not known, or that is not why it failed. */
pid_t worker_proc_holder(const struct worker_proc *worker);
/* NULL before BACKING. Valid as long as the worker. */
const struct worker_store *worker_proc_store(const struct worker_proc *worker);
/* Hands the descriptor of the store on: the caller's from now on; -1: there is none (any more). */
int worker_proc_take_store(struct worker_proc *worker);
/* From NOTICE, since the caller has cleared the list last. */
struct problem_list *worker_proc_notices(struct worker_proc *worker);
/* NULL while it lives. */
const struct worker_death *worker_proc_death(const struct worker_proc *worker);
/* CLOCK_MONOTONIC microseconds at which its death was seen, 0 while it lives. */
uint64_t worker_proc_died_at(const struct worker_proc *worker);

/* 0 or -errno of worker_msg_send(). The stage is then WORKER_STAGE_FETCHING, or _SERVING. */
int worker_proc_go(
        struct worker_proc *worker, int number, const struct data_route *route, const char *queue_cpus);
int worker_proc_live(struct worker_proc *worker);
/* Asks it to serve `size` bytes. Its parameters tell whether it does, its refusal why not. 0; -EOPNOTSUPP: it
 * is an older program; -EFBIG: nothing can have that size; -errno of worker_msg_send(). */
int worker_proc_grow(struct worker_proc *worker, uint64_t size);
/* Why it has not grown when it was asked last; empty: it has, or has not answered yet. */
const struct problem_list *worker_proc_refusal(const struct worker_proc *worker);
/* Forget that; what it answers to an earlier request to grow is ignored as well. */
void worker_proc_forget_refusal(struct worker_proc *worker);
/* SIGKILL through the pidfd: by contract nothing acknowledged is lost. The stage is WORKER_STAGE_LEAVING
 * until its death, which is reported. */
void worker_proc_kill(struct worker_proc *worker);
/* The same, for a reason that its death tells: a clause, "it …". */
void worker_proc_refuse(struct worker_proc *worker, const char *fault);
