/* SPDX-License-Identifier: MIT */
/* Actions of a device: what a client has started by the name of a verb of its target, how far it is, and what came of
 * it. */
#pragma once

#include "ublkd/model/reason.h"
#include "ublkd/values/json_util.h"

#include <stdint.h>

enum device_action_state {
        DEVICE_ACTION_PENDING, /* no worker was asked yet */
        DEVICE_ACTION_RUNNING, /* a worker was asked */
        DEVICE_ACTION_SUCCEEDED,
        DEVICE_ACTION_FAILED,
        DEVICE_ACTION_CANCELLED,
        _DEVICE_ACTION_STATE_MAX
};

struct device_action {
        uint64_t id; /* of this device, no other has it; a client sees it as a number */
        char *verb;
        char *arguments; /* JSON text, an object */
        enum device_action_state state;
        enum condition_reason reason; /* of its end; REASON_NONE before */
        char *message;                /* the same, a sentence; NULL before */
        bool cancel_requested;
        uint64_t done, total;                      /* bytes; not durable before its end */
        char *result;                              /* JSON text; NULL: none */
        uint64_t created_at, started_at, ended_at; /* CLOCK_REALTIME, microseconds; 0: not yet */
};

enum { DEVICE_ACTIONS_KEPT = 8 }; /* of those that have ended, the newest */

/* The oldest first. Only the last may be under way. */
struct device_actions {
        struct device_action *items[DEVICE_ACTIONS_KEPT + 1];
        size_t count;
};

static inline bool device_action_has_ended(const struct device_action *action)
{
        return action->state > DEVICE_ACTION_RUNNING;
}

const char *device_action_state_to_string(enum device_action_state state); /* "Pending" */

/* Make an action that nothing has happened to. Return NULL on ENOMEM. */
struct device_action *device_action_new(uint64_t id, const char *verb, const char *arguments, uint64_t now);
/* Free an action. NULL is fine. Return NULL. */
struct device_action *device_action_free(struct device_action *action);

/* Return the list of `text`, as device_actions_to_text() made it; what is not an action is left out. NULL: there is none, or
 * ENOMEM. */
struct device_actions *device_actions_from_text(const char *text);
/* Return the list as JSON text, which the caller frees; NULL on ENOMEM. */
char *device_actions_to_text(const struct device_actions *actions);
/* Return a copy (of NULL: an empty list), or NULL on ENOMEM. */
struct device_actions *device_actions_copy(const struct device_actions *actions);
/* Free a list. NULL is fine. Return NULL. */
struct device_actions *device_actions_free(struct device_actions *actions);
DEFINE_CLEANUP(struct device_actions, device_actions_free);

/* Add an action, which is taken over. The oldest one goes if there is no room. */
void device_actions_add(struct device_actions *actions, struct device_action *action);
/* Drop the oldest of those that have ended, until DEVICE_ACTIONS_KEPT of them are left. */
void device_actions_trim(struct device_actions *actions);
/* Return the action that is under way; NULL: none is. actions: may be NULL. */
struct device_action *device_actions_current(const struct device_actions *actions);
/* Return the action with that id, or NULL. actions: may be NULL. */
struct device_action *device_actions_find(const struct device_actions *actions, uint64_t id);

/* Return an action as clients see it, and the database has it; NULL on ENOMEM. */
cJSON *device_action_to_json(const struct device_action *action);
