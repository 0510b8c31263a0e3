/* SPDX-License-Identifier: MIT */
/* A world for a reconciler: a store in memory, a runtime directory, and the kernel and workers of
 * reconciler_fakes.h. One at a time, since the fakes are the process's. */
#pragma once

#include "tests/unit/ublkd/reconcile/reconciler_fakes.h"
#include "tests/unit/ublkd/store/store_faulty.h"
#include "ublkd/reconcile/view/observe.h"
#include "ublkd/reconcile/reconciler.h"

/* What world.host.features may say that the kernel has; as in <linux/ublk_cmd.h>. */
enum {
        WORLD_GROWS = 1 | 1 << 10, /* UPDATE_SIZE */
        WORLD_QUIESCES = 1 | 1 << 12,
        WORLD_TRIES_TO_STOP = 1 | 1 << 17
};

struct world {
        sd_event *event;
        struct store_faulty disk; /* under the store */
        struct device_store *store;
        struct runtime_dir *dir;
        struct disk_search *disk_search; /* finds fake_user */
        struct fd_store *fd_store;       /* the test's; NULL: no service manager keeps anything */
        struct host host;
        struct reconciler *reconciler;
        char path[64]; /* of the runtime directory */
};

void world_new(struct world *world);
void world_free(struct world *world);
/* ublkd dies, and comes again: kernel, workers, store and directory stay. */
void world_stop_reconciler(struct world *world);
void world_start_reconciler(struct world *world);

/* Creates or replaces a loop device; `more` is "" or ",KEY:VALUE..." of its spec. */
void world_put_loop(struct world *world, const char *name, const char *more);
/* The same, with `kib` KiB of its backing store from byte `offset` on. */
void world_put_size(struct world *world, const char *name, uint64_t kib, uint64_t offset);

/* Lets the loop and the kernel do all that they do by themselves, until nothing happens for `milliseconds`
 * in all. */
void world_settle(struct world *world, unsigned milliseconds);
/* Until there is no such record; a check fails when it stays. */
void world_wait_gone(struct world *world, const char *name);

/* Until its status says so; a check fails when it does not. */
void world_wait_told(struct world *world, const char *name, const char *words);

/* NULL: no such device. */
const struct device_record *world_record(const struct world *world, const char *name);
enum device_phase world_phase(const struct world *world, const char *name);

/* From a worker that has just been started to a live disk; its backing store is `key`. */
void world_bring_up(struct world *world, const char *name, const char *key);
/* Whoever was killed is dead, and whoever was started opens the store, for some rounds. */
void world_churn(struct world *world, const char *const *names, size_t count, const char *key);
