/* SPDX-License-Identifier: MIT */
/* PURE: whether the path of a device's spec still leads to the store of its disk, and how that is
 * reported. */
#pragma once

#include "ublkd/model/device_condition.h"
#include "ublkd/model/device_event.h"
#include "ublkd/model/reason.h"
#include "ublkd/paths/path_watch.h"

/* The facts of a disk and of the store that it was created on. */
struct path_facts {
        int number; /* of the disk */
        const char *path;
        const struct path_view *view;   /* what the path watcher has found at the path */
        const struct path_store *store; /* that the disk was created on */
        bool held;                      /* the supervisor has the store open */
        bool serving;                   /* a worker has the store open */
        bool unnamed;                   /* the store is a file without a name; only for a sentence */
        bool refused;                   /* a worker has found another store at the path */
};

/* How a state is reported. */
struct path_kind {
        enum condition_status status;
        enum condition_reason reason;
        bool is_event;
        enum event_type type;
};

/* Return where the path leads, as far as the open descriptors identify the store. */
enum path_state path_condition_state(const struct path_facts *facts);
const struct path_kind *path_condition_kind(enum path_state state);
/* Write the sentence of a state, which the caller frees. Return 0 or -ENOMEM. */
int path_condition_explain(const struct path_facts *facts, char **ret);
