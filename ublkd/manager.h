/* SPDX-License-Identifier: MIT */
/* Owns every module of the supervisor and the event loop. */
#pragma once

#include "api/api.h"
#include "ublkd/base/problem.h"
#include "ublkd/config/config.h"
#include "ublkd/tasks/tenant_policy.h"
#include "ublkd/workers/worker_start.h"

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

/* Borrowed; what is pointed to outlives the manager. */
struct manager_options {
        const struct config_request *config_request; /* to read the configuration again */
        const struct config *config;                 /* that all the rest is from */
        const struct tenant_policy *policy;          /* what users may have who are not administrators */
        const char *state_dir;                       /* the database and the API token */
        const char *runtime_dir;                     /* sockets of workers */
        const char *cdi_dir;                         /* files for container engines; NULL: none */
        const char *worker;                          /* path of ublkd-worker */
        const char *helper;                          /* path of ublkd-helper */
        const char *const *listen;
        uint64_t
                ignored_features; /* features of the driver that ublkd does not use; bit N: kernel_feature_name(N) */
        bool refuse_unstable_paths; /* in a spec: api.h */
        bool allow_fault_target;    /* in a spec, and for disks to be made */
        bool replace_workers;       /* of another version: worker_upgrade.h */
        unsigned spare_workers;     /* WORKER_SPARES_MAX at most */
        struct api_rights rights;
        struct api_group socket_group;
        struct worker_confinement confinement;
        const char *const *devices_dirs; /* of files that describe devices; the most important first */
        size_t devices_dir_count;
        size_t listen_count; /* 0: the sockets from systemd, else RUNTIME_DIR/ublkd.sock */
};

struct manager;

/* Open the database and the runtime directory, adopt the workers and listen. Return 0, or -errno with problems.
 */
int manager_new(const struct manager_options *options, struct manager **ret, struct problem_list *problems);
struct manager *manager_free(struct manager *manager);

/* Run until SIGTERM or SIGINT; SIGHUP reloads the configuration. Workers continue after it. Return 0 or -errno. */
int manager_run(struct manager *manager);
