/* SPDX-License-Identifier: MIT */
/* PURE: whether the path of a device's spec still leads to what its disk is served from, and what is reported. */
#pragma once

#include "ublkd/model/device_condition.h"
#include "ublkd/model/device_event.h"
#include "ublkd/model/reason.h"
#include "ublkd/paths/path_watch.h"

/* What is known of a disk and of the store that it was made on. */
struct path_facts {
        int number; /* of the disk */
        const char *path;
        const struct path_view *view;   /* what was seen at the path */
        const struct path_store *store; /* that the disk was made on */
        bool held;                      /* the supervisor has it open */
        bool serving;                   /* a worker has it open */
        bool unnamed;                   /* it is a file without a name; only for a sentence */
        bool refused;                   /* a worker has found another one at the path */
};

/* How a state is reported. */
struct path_kind {
        enum condition_status status;
        enum condition_reason reason;
        bool is_event;
        enum event_type type;
};

/* Return where the path leads, as far as what is open now can tell. */
enum path_state path_condition_state(const struct path_facts *facts);
const struct path_kind *path_condition_kind(enum path_state state);
/* A sentence, which the caller frees. 0 or -ENOMEM. */
int path_condition_explain(const struct path_facts *facts, char **ret);
/* CONDITION_PATH_LEADS_TO_STORE. 0 or -ENOMEM. */
int path_condition(const struct path_facts *facts, struct device_condition *ret);
