/* SPDX-License-Identifier: MIT */
/* What is known of a worker; for worker_proc.c and worker_proc_ask.c only. */
#pragma once

#include "ublkd/plan/worker_growth.h"
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
        int channel; /* -1: closed by the worker, or no longer listened to */
        sd_event_source *channel_source, *pidfd_source, *grace_source;
        bool adopted;
        bool greeted;              /* HELLO came */
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
        struct worker_store store;
        char fault[64]; /* why we killed it, or "" */
        struct worker_death death;
        uint64_t died_at;
};
