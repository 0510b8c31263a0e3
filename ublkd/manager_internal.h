/* SPDX-License-Identifier: MIT */
/* What the manager owns; for manager.c, manager_api.c and manager_looks.c. */
#pragma once

#include "ublkd/manager.h"

#include "ublkd/filesystems/filesystem_maker.h"
#include "ublkd/filesystems/filesystem_mounts.h"
#include "ublkd/host/foreign_scan.h"
#include "ublkd/host/host.h"
#include "ublkd/host/state_look.h"
#include "ublkd/nodes/client_delivery.h"
#include "ublkd/nodes/private_node.h"
#include "ublkd/records/record_keeper.h"
#include "ublkd/store/event_writer.h"

#include <limits.h>

struct manager {
        sd_event *event;
        struct host host;
        struct config_reload *config_reload;
        struct subuid_watch *subuid_watch; /* NULL: it could not be opened */
        struct runtime_dir *runtime_dir;
        struct runtime_guard *runtime_guard;
        struct device_store *store;
        struct record_keeper *record_keeper;
        struct job_thread *image_thread; /* works on the images of pools */
        struct driver_keeper *driver_keeper;
        struct event_writer *event_writer;
        int events_error;                      /* -errno of the last write; 0: it worked */
        const char *state_dir;                 /* of the options */
        struct worker_groups *worker_groups;   /* NULL: it could not be opened */
        struct worker_confinement confinement; /* in force: worker_uids.h */
        struct worker_start *worker_start;
        struct disk_search *disk_search;
        struct disk_timeout *disk_timeout;
        struct partition_scanner *partition_scanner; /* as worker_groups */
        struct private_nodes *private_nodes;         /* as worker_groups */
        struct node_recall *node_recall;             /* as worker_groups */
        struct cdi_specs *cdi_specs;                 /* NULL: not wanted, or as worker_groups */
        struct node_deliveries *node_deliveries;
        struct filesystem_maker *filesystem_maker;
        struct peer_paths *peer_paths;
        struct filesystem_mounts *filesystem_mounts;
        struct path_watches *path_watches;
        struct fd_store *fd_store;
        struct disk_watch *disk_watch; /* as worker_groups */
        struct reconciler *reconciler; /* NULL until the control plane has opened or failed */
        struct declared_devices *declared;
        struct foreign_scan *foreign_scan;
        struct state_look *state_look;
        struct service_line *service_line;
        struct disk_marks *disk_marks;
        struct worker_upgrade *worker_upgrade;
        const struct policy *policy; /* in force now; NULL: no rule */
        bool allow_fault_target;     /* devices may have targets for tests */
        bool replace_workers;        /* as the configuration says now */
        bool scanning, looking;      /* foreign_scan or state_look works for a client */
        struct authority *authority;
        struct api *api;     /* NULL until it is open */
        bool boot_pass_done; /* the first pass over every device is done */
        bool reloading;      /* the service manager waits for the end of a reload */
        char socket_path[PATH_MAX];
        char mounts[FILESYSTEM_PATH_SIZE]; /* the directory of all mounts */
};
