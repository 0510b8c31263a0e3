/* SPDX-License-Identifier: MIT */
/* One worker of worker_fake.h at a time, and the loop of its supervisor. */
#pragma once

#include "ublkd/workers/worker_proc.h"

struct watch {
        sd_event *event;
        struct runtime_dir *dir;
        struct worker_start *starter; /* of this program */
        struct worker_proc *worker;
        unsigned changes;
        bool in_loop; /* a change may be reported only then */
};

static const struct data_route watch_copy = {.path = DATA_PATH_COPY};

/* Run the loop until `done`, or long enough to be a failure. Return whether it is. */
bool watch_run_until(struct watch *watch, bool (*done)(const struct watch *watch));
bool watch_is_dead(const struct watch *watch);
bool watch_is_open(const struct watch *watch);
bool watch_is_ready(const struct watch *watch);
bool watch_is_serving(const struct watch *watch);

/* Start the worker `name` with a starter and a spec. Return 0 or -errno. */
int watch_try_spawn(struct watch *watch, struct worker_start *starter, const char *name, const char *spec);
/* Start the worker `name` with a list of stores, and no descriptor of them. Return 0 or -errno. */
int watch_spawn_listed(struct watch *watch, const char *name, struct store_list stores);
/* Start the worker `name`; a check fails if it cannot. */
void watch_spawn(struct watch *watch, const char *name);
/* In a process of its own: listen as the worker of the disk, write a byte to `ready`, and serve. Does not return. */
_Noreturn void watch_listen_and_serve(struct watch *watch, int ready);
/* Connect to the worker that lives already. Return as worker_proc_adopt(). */
int watch_adopt(struct watch *watch);
/* Free the handle; the process lives on. */
void watch_let_go(struct watch *watch);
/* Start the worker `name`, and check that it dies of this. */
void watch_check_death(struct watch *watch, const char *name, const char *sentence);
/* Start the worker `name`, and say LIVE to it. */
void watch_spawn_live(struct watch *watch, const char *name);
/* Check that the worker dies, killed for a breach of the protocol with this sentence, and free the handle. */
void watch_check_breach(struct watch *watch, const char *sentence);
/* Start a worker that serves, and breaks the protocol then; check that it dies of this. */
void watch_check_death_of_serving(struct watch *watch, const char *name, const char *sentence);
