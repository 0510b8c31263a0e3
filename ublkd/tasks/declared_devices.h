/* SPDX-License-Identifier: MIT */
/* What the supervisor does with the files that describe devices: it applies them, logs what is wrong with them, and
 * shows that in GET /host. Runs on the loop. */
#pragma once

#include "ublkd/declared/declared.h"
#include "ublkd/records/record_keeper.h"

struct host;

/* All pointers outlive it. */
struct declared_devices_config {
        struct declared_config
                declared; /* without the callbacks but those of `checks`; no `dirs`: the usual ones */
        struct host *host;
        struct record_keeper *record_keeper;
        void (*applied)(void *userdata); /* after each time that the files were applied */
        void *userdata;
};

struct declared_devices;

/* Create it; declared_devices_apply() reads the files. Return 0 or -errno. */
int declared_devices_new(const struct declared_devices_config *config, struct declared_devices **ret);
/* Free it. NULL is fine. Return NULL. */
struct declared_devices *declared_devices_free(struct declared_devices *devices);
/* See declared_set_policy(). */
void declared_devices_set_policy(struct declared_devices *devices, bool refuse_unstable_paths);
/* Read the files and apply them at the start, when no device is removed; `applied` follows. */
void declared_devices_apply(struct declared_devices *devices);
/* The same, as the administrator asked: devices whose file is gone are removed, if they are not in use. */
void declared_devices_reload(struct declared_devices *devices);
/* The first pass over all devices is done: do what had to wait for it. */
void declared_devices_boot_pass_done(struct declared_devices *devices);
