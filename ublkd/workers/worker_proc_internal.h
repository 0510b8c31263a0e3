/* SPDX-License-Identifier: MIT */
/* What is known of a worker; for worker_proc*.c only. */
#pragma once

#include "ublkd/plan/worker_growth.h"
#include "ublkd/plan/worker_messages.h"
#include "ublkd/workers/worker_log.h"
#include "ublkd/workers/worker_proc.h"

struct worker_proc {
        sd_event *event;
        struct runtime_dir *dir;
        struct worker_start *starter;
        char *name, *uid;
        worker_proc_changed changed;
        void *userdata;
        pid_t pid;
        int pidfd;
        int network;                     /* worker_network.h, from SERVING on; < 0: none */
        int channel;                     /* -1: closed by the worker, or no longer listened to */
        struct worker_messages messages; /* of this connection */
        struct worker_log *log;          /* NULL: of an adopted worker */
        sd_event_source *channel_source, *pidfd_source, *grace_source, *closed_source, *news_source;
        bool adopted;
        bool unreachable;          /* it lives, and does not listen: there is no channel */
        bool left_channel;         /* it serves, and has closed its channel */
        bool greeted;              /* HELLO came */
        bool acts, leaves;         /* from HELLO: it takes ACTION, and LEAVE */
        enum worker_stage stage;   /* what is reported to others */
        enum worker_stage claimed; /* from HELLO: `stage` follows once the parameters are known, too */
        uint16_t epoch;
        uint32_t restart;
        char version[WORKER_VERSION_SIZE];
        int number;
        uint64_t started_at;
        struct worker_msg params; /* type WORKER_MSG_PARAMS once it came */
        struct worker_growth growth;
        struct problem_list problems, refusal, notices;
        pid_t holder; /* from FAILED */
        struct worker_stores stores;
        unsigned listed;  /* stores in the list of CONFIG; 0: it had none, or the worker was adopted */
        bool lacks_store; /* neither CONFIG nor BACKING had the descriptor of each of them */
        bool has_news;    /* NEWS came, and is not reported yet */
        uint64_t news_at; /* CLOCK_MONOTONIC: it was reported last */
        enum worker_fault fault;
        char fault_words[64]; /* why ublkd killed it, or "" */
        struct worker_death death;
        uint64_t died_at;
};

/* Kill the worker for a reason that its death shows: a clause, "it ...". The first reason counts. */
void worker_proc_kill_for(struct worker_proc *worker, enum worker_fault fault, const char *format, ...)
        _printf_(3, 4);
/* Its channel was closed, or is broken: expect it to exit. One that serves stays in that stage; if it lives on, see
 * worker_proc_left_channel(). */
void worker_proc_lost_channel(struct worker_proc *worker);
/* The stage only rises; it rises past OPENING only once the parameters are known. */
void worker_proc_raise_stage(struct worker_proc *worker, enum worker_stage stage);
/* Receive and handle one message. Return 1: there may be more; 0: none for now; -errno: the channel is
 * broken. */
int worker_proc_receive(struct worker_proc *worker);
