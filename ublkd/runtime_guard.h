/* SPDX-License-Identifier: MIT */
/* What the supervisor does when its runtime directory is removed: makes it again, writes the records into it, and tells
 * what that means for the workers. Runs on the loop. */
#pragma once

#include "ublkd/records/record_keeper.h"

#include <systemd/sd-event.h>

/* All pointers outlive the guard. */
struct runtime_guard_config {
        sd_event *event;
        struct runtime_dir *dir;
        struct device_store *store;
        struct record_keeper *record_keeper;
        /* Entries of the directory were removed. remade: and the directory, which is there again with the records. */
        void (*changed)(void *userdata, bool remade);
        void *userdata;
};

struct runtime_guard;

/* A directory that cannot be watched is logged, and no error. 0 or -errno. */
int runtime_guard_new(const struct runtime_guard_config *config, struct runtime_guard **ret);
/* NULL is fine. Returns NULL. */
struct runtime_guard *runtime_guard_free(struct runtime_guard *guard);
/* Adds the problem of the host that is left of it, if there is one. 0 or -ENOMEM. */
int runtime_guard_tell(struct runtime_guard *guard, struct problem_list *problems);
