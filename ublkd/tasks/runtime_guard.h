/* SPDX-License-Identifier: MIT */
/* What the supervisor does when its runtime directory is removed: it recreates the directory, writes the
 * records into it, and reports what the loss means for the workers. Runs on the loop. */
#pragma once

#include "ublkd/tasks/disk_marks.h"
#include "ublkd/records/record_keeper.h"

#include <systemd/sd-event.h>

/* All pointers outlive the guard. */
struct runtime_guard_config {
        sd_event *event;
        struct runtime_dir *dir;
        struct device_store *store;
        struct record_keeper *record_keeper;
        struct disk_marks *disk_marks; /* NULL: none */
        /* Entries of the directory were removed. remade: so was the directory, or files of devices in it, and the
         * guard has written the records again. */
        void (*changed)(void *userdata, bool remade);
        void *userdata;
};

struct runtime_guard;

/* Create a guard. Log it if the directory cannot be watched, which is not an error. Return 0 or -errno. */
int runtime_guard_new(const struct runtime_guard_config *config, struct runtime_guard **ret);
/* Free the guard. NULL is fine. Return NULL. */
struct runtime_guard *runtime_guard_free(struct runtime_guard *guard);
/* Add the problem of the host that the loss has left, if there is one. Return 0 or -ENOMEM. */
int runtime_guard_report(struct runtime_guard *guard, struct problem_list *problems);
