/* SPDX-License-Identifier: MIT */
/* A world for a reconciler: a store in memory, a runtime directory, and the kernel and workers of
 * reconciler_fakes.h. One at a time, because the fakes are global. */
#pragma once

#include "tests/unit/ublkd/reconcile/reconciler_fake_worker.h"
#include "tests/unit/ublkd/reconcile/reconciler_fakes.h"
#include "tests/unit/ublkd/store/store_faulty.h"
#include "ublkd/reconcile/reconciler.h"

/* Values of world.host.features. */
enum {
        WORLD_RECOVERS = FEATURE_RECOVERY | FEATURE_REISSUE | FEATURE_IOCTL_ENCODE,
        WORLD_GROWS = WORLD_RECOVERS | FEATURE_GROW,
        WORLD_QUIESCES = WORLD_RECOVERS | FEATURE_QUIESCE | FEATURE_DESC_SIZE,
        WORLD_TRIES_TO_STOP = WORLD_RECOVERS | FEATURE_TRY_STOP
};

struct world {
        sd_event *event;
        struct store_faulty disk; /* under the store */
        struct device_store *store;
        struct runtime_dir *dir;
        struct disk_search *disk_search;               /* finds the user of the fake kernel */
        struct fd_store *fd_store;                     /* of the test; NULL: no service manager */
        const struct progress_places *progress_places; /* of the test; NULL: workers are not looked at */
        struct worker_groups *worker_groups;           /* of the test; NULL: none */
        struct disk_timeout *disk_timeout;             /* of the test; NULL: none */
        struct job_thread *image_thread;               /* of the test; NULL: no images */
        const char *version;                           /* of ublkd; NULL: not known */
        struct host host;
        struct reconciler *reconciler;
        struct ublk_ctl *ctl;
        char path[64]; /* of the runtime directory, and of the database if there is one */
};

void world_new(struct world *world);
/* The same with a database, so that world_kill_with_workers() can lose what is not in it. */
void world_new_with_database(struct world *world);
void world_free(struct world *world);
/* Stop and start ublkd: kernel, workers, store and directory stay. */
void world_stop_reconciler(struct world *world);
void world_start_reconciler(struct world *world);
/* Both: the started ublkd finds a worker for every device, which has not sent HELLO yet. */
void world_restart_with_workers(struct world *world);
/* Kill ublkd instead: events that the database does not have are lost. For a world with a database. */
void world_kill_with_workers(struct world *world);

/* Create or replace a loop device; `more` is "" or ",KEY:VALUE..." of its spec. */
void world_put_loop(struct world *world, const char *name, const char *more);
/* The same, with `kib` KiB of its backing store from byte `offset` on. */
void world_put_size(struct world *world, const char *name, uint64_t kib, uint64_t offset);

/* Run the loop, and answer control commands, until nothing happens for `milliseconds` in total. */
void world_settle(struct world *world, unsigned milliseconds);
/* How many searches for openers have begun. */
unsigned world_searches(void);
/* Goes on with the last search, which has stopped (fake_kernel.searches_stop). */
void world_continue_search(void);
/* Wait until the record is erased; a check fails if it stays. */
void world_wait_gone(struct world *world, const char *name);

/* Wait until its status has that reason; a check fails otherwise. */
void world_wait_reason(struct world *world, const char *name, enum condition_reason reason);
/* Wait until the message of its status has that value in it (a process, a device); a check fails otherwise. */
void world_wait_value(struct world *world, const char *name, const char *value);
/* Wait until ublkd has asked its worker to grow, and has no answer yet; a check fails if it does not ask. */
void world_wait_growth_asked(struct world *world, const char *name);

/* Return the record; NULL: no such device. */
const struct device_record *world_record(const struct world *world, const char *name);
enum device_phase world_phase(const struct world *world, const char *name);
/* Return how often the events of the store with this reason happened; one event may count several times. */
unsigned world_count_events(const struct world *world, enum condition_reason reason);

/* Return the message of the newest event with this reason; "": there is none. */
const char *world_last_message(const struct world *world, enum condition_reason reason);

/* Make the disk of a worker that has just been started live; its backing store is `key`. */
void world_bring_up(struct world *world, const char *name, const char *key);
/* Create the loop device "data" on "file:1" with a region, and make it live; `more` as for world_put_loop(). Return its
 * region as its workers see it; it stays mapped. */
struct region_control *world_bring_up_with_region(struct world *world, const char *more);
/* For some rounds: killed workers die, and started workers open the store. */
void world_churn(struct world *world, const char *const *names, size_t count, const char *key);
