/* SPDX-License-Identifier: MIT */
/* Owns every module of the supervisor and the event loop. */
#pragma once

#include "ublkd/base/problem.h"

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

/* Strings are not owned and outlive the manager. */
struct manager_options {
        const char *state_dir;   /* the database and the API token */
        const char *runtime_dir; /* sockets of workers */
        const char *worker;      /* path of ublkd-worker */
        const char *const *listen;
        uint64_t ignored_features;  /* of the driver: as if it lacked them; bit N: kernel_feature_name(N) */
        bool refuse_unstable_paths; /* in a spec: api.h */
        size_t listen_count;        /* 0: what systemd passed, else RUNTIME_DIR/ublkd.sock */
};

struct manager;

/* Opens the state, finds what is there and starts to listen. 0; -errno with problems that say why not. */
int manager_new(const struct manager_options *options, struct manager **ret, struct problem_list *problems);
struct manager *manager_free(struct manager *manager);

/* Runs until SIGTERM or SIGINT. Workers go on after it. 0 or -errno. */
int manager_run(struct manager *manager);
