/* SPDX-License-Identifier: MIT */
/* The struct of the store and the functions that its files share. For device_store*.c, store_actions.c and
 * store_adopt.c only. */
#pragma once

#include "ublkd/store/device_store.h"
#include "ublkd/store/event_draft.h"
#include "ublkd/store/store_entries.h"
#include "ublkd/store/store_subscribers.h"

struct device_store {
        const struct device_backend *backend;
        void *context;
        struct store_entries entries;
        uint64_t revision;
        struct store_stamp stamp; /* as the backend has stored it */
        struct event_log *events;
        struct store_subscribers subscribers;
        bool gone; /* see device_store_is_gone() */
};

/* Call the subscribers after a change. event: of the change, or NULL. */
void device_store_announce(struct device_store *store, enum store_event_kind kind,
        const struct store_entry *entry, const struct device_event *event);

/* Pass on what a write came to (0 or -errno), and note what it says of the database. */
int device_store_note_write(struct device_store *store, int r);
/* The same for a change: `revision` and `event` (or NULL) are the store's if both are durable now, else the event is
 * freed. Return 0, or r. */
int device_store_note_change(
        struct device_store *store, int r, uint64_t revision, struct device_event *event);

/* Make `record` and the event of `draft` durable, and set record->revision to the next revision. *ret is the
 * event, or NULL without an event. Return 0, or -errno: nothing has changed. */
int device_store_save(struct device_store *store, struct device_record *record, const char *text,
        const struct event_draft *draft, const struct device_event **ret);

/* Save `changed`, a copy of the entry's record with other values, with the event of `draft`, then replace the
 * record by it and announce it. Return 0, or -errno of the backend: nothing has changed. */
int device_store_change(struct device_store *store, struct store_entry *entry, struct device_record *changed,
        const struct event_draft *draft);
/* The same for what a client has caused. reason, message: of the event; REASON_NONE: no event. */
int device_store_update(struct device_store *store, struct store_entry *entry, struct device_record *changed,
        enum condition_reason reason, const char *message);
