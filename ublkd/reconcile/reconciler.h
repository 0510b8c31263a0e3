/* SPDX-License-Identifier: MIT */
/* Brings what is there to what is wanted: a de-duplicating queue of device names, one step at a time for
 * each. Events only queue a name; every decision reads the facts anew. Runs on the supervisor's loop. */
#pragma once

#include "ublkd/model/daemon_counters.h"
#include "ublkd/store/device_store.h"
#include "ublkd/disk_users/disk_search.h"
#include "ublkd/disks/disk_timeout.h"
#include "ublkd/runtime/fd_store.h"
#include "ublkd/host/host.h"
#include "ublkd/paths/path_watch.h"
#include "ublkd/records/record_keeper.h"
#include "ublkd/runtime/runtime_dir.h"
#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/workers/worker_start.h"

struct reconciler;

struct reconciler_config {
        sd_event *event;
        struct device_store *store;
        struct runtime_dir *runtime_dir;
        struct record_keeper *record_keeper; /* NULL: no records are kept beside the database */
        const struct host *host;
        struct worker_start *worker_start;
        struct disk_search *disk_search;   /* who uses a disk; NULL: nobody knows */
        struct disk_timeout *disk_timeout; /* NULL: the kernel's default stays */
        struct path_watches *path_watches; /* where paths lead; NULL: nobody looks */
        struct fd_store *fd_store;         /* what the service manager keeps; NULL: there is none */
        /* Called once, when every device that was there at the start had its first pass. */
        void (*settled)(void *userdata);
        void *userdata;
};

/* Adopts the workers that live, and queues every device. All pointers in config outlive the reconciler. */
int reconciler_new(const struct reconciler_config *config, struct reconciler **ret);
struct reconciler *reconciler_free(struct reconciler *reconciler);

/* What it has done so far. */
void reconciler_counters(const struct reconciler *reconciler, struct daemon_counters *ret);

/* The control plane came (or NULL: went). Until it is there no device moves, and each says why. Queues all.
 */
void reconciler_set_control(struct reconciler *reconciler, struct ublk_ctl *ctl);
