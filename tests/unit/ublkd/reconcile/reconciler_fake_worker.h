/* SPDX-License-Identifier: MIT */
/* A fake worker, for reconciler_fakes.c and for tests that let it send unusual messages. */
#pragma once

#include "ublkd/workers/worker_proc.h"

#include <sys/queue.h>

struct worker_proc {
        TAILQ_ENTRY(worker_proc) link;
        char *name, *key;
        enum worker_stage stage;
        uint16_t epoch;
        uint32_t restart;
        int number;
        bool adopted, opened, dead;
        struct disk_params params;
        uint64_t start; /* of its claim */
        uint64_t asked; /* to grow to */
        struct problem_list problems, refusal, notices;
        pid_t holder;
        int given;           /* the descriptor of the store in CONFIG */
        bool exists, shared; /* as in CONFIG */
        bool has_data, expected_served;
        struct worker_store store;
        enum worker_lock lock;
        const char *fault; /* why ublkd killed it; NULL: unknown */
        struct worker_death death;
        worker_proc_changed changed;
        void *userdata;
};

/* All workers, the newest last. */
TAILQ_HEAD(fake_workers, worker_proc);
extern struct fake_workers fake_workers;
