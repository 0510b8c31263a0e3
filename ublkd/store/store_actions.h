/* SPDX-License-Identifier: MIT */
/* The actions of devices in the store. Each change is durable before it counts, but the progress. What a client asks for is
 * announced as STORE_INTENT, the rest as STORE_NOTED; a cancellation and a start of the worker have no event. */
#pragma once

#include "ublkd/store/device_store.h"

/* How an action has ended. Borrows its texts. */
struct action_end {
        enum device_action_state state;
        enum condition_reason reason;
        const char *message;
        const char *result; /* JSON text; NULL: none */
        bool alarms;        /* the event is a Warning */
};

/* Store an action that a client asks for. arguments: JSON text, an object, checked by the caller. Return 0 and its id;
 * -ENOENT; -EBUSY: another one is under way; -ENOMEM; or -errno of the backend. */
int device_store_begin_action(struct device_store *store, const char *name, const char *verb,
        const char *arguments, uint64_t *ret_id);
/* Store that a client wants the action to end. Return 0, also if it has ended or that was stored; -ENOENT: there is no such
 * device or action; or as above. */
int device_store_cancel_action(struct device_store *store, const char *name, uint64_t id);

/* For the reconciler. Each returns 0, -ENOENT: the action is not under way; or as above. */
/* Store that a worker is asked for it next. */
int device_store_run_action(struct device_store *store, const char *name, uint64_t id);
/* Set how far it is, in bytes. Not durable, and no change that is announced. */
int device_store_set_action_progress(
        struct device_store *store, const char *name, uint64_t id, uint64_t done, uint64_t total);
/* Store its end, with the event of it. */
int device_store_end_action(
        struct device_store *store, const char *name, uint64_t id, const struct action_end *end);
