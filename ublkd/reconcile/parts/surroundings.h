/* SPDX-License-Identifier: MIT */
/* What all devices share: the store, the host, the kernel. */
#pragma once

#include "ublkd/cgroups/worker_groups.h"
#include "ublkd/disk_users/disk_search.h"
#include "ublkd/disks/disk_timeout.h"
#include "ublkd/disks/disk_watch.h"
#include "ublkd/disks/swap_watch.h"
#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/host/host.h"
#include "ublkd/nodes/cdi_spec.h"
#include "ublkd/nodes/node_recall.h"
#include "ublkd/nodes/private_node.h"
#include "ublkd/partitions/partition_scan.h"
#include "ublkd/paths/path_watch.h"
#include "ublkd/records/record_keeper.h"
#include "ublkd/runtime/fd_store.h"
#include "ublkd/runtime/runtime_dir.h"
#include "ublkd/store/device_store.h"
#include "ublkd/workers/worker_start.h"

struct job_thread;

/* "/sys" and "/proc", or other trees in tests. */
struct progress_places {
        const char *sys, *proc;
};

struct reconciler_config {
        sd_event *event;
        struct device_store *store;
        struct runtime_dir *runtime_dir;
        struct record_keeper *record_keeper; /* NULL: no copies of records beside the database */
        const struct host *host;
        struct worker_start *worker_start;
        const char *version; /* of this ublkd, to which its workers belong; NULL: not known, as in tests */
        struct disk_search *disk_search;             /* openers of disks; NULL: they cannot be searched */
        struct disk_timeout *disk_timeout;           /* NULL: the kernel's default stays */
        struct disk_watch *disk_watch;               /* what udev does; NULL: it is not known */
        struct private_nodes *private_nodes;         /* NULL: tenants get no nodes */
        struct node_recall *node_recall;             /* NULL: what containers have mounted stays */
        struct cdi_specs *cdi_specs;                 /* NULL: no files for container engines */
        struct partition_scanner *partition_scanner; /* NULL: ublkd leaves partitions alone */
        struct path_watches *path_watches;           /* where paths lead; NULL: not watched */
        struct fd_store *fd_store; /* what the service manager keeps; NULL: no service manager */
        /* Where to look whether workers make progress, and which disks hold swap; NULL: neither is looked at. */
        const struct progress_places *progress_places;
        struct job_thread *image_thread;     /* works on the images of pools; NULL: no device can have one */
        struct worker_groups *worker_groups; /* NULL: workers have no control groups */
        bool allow_fault_target;             /* create disks with targets for tests */
        /* Called once, when every device in the store at the start has had its first pass. */
        void (*boot_pass_done)(void *userdata);
        void *userdata;
};

/* Only reconciler.c writes it. */
struct surroundings {
        struct reconciler_config config;
        struct ublk_ctl *ctl;          /* NULL: not open */
        struct swap_watch *swap_watch; /* NULL: it is not known which disks hold swap */
        char boot_id[UID_TEXT_SIZE];
};
