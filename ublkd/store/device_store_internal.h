/* SPDX-License-Identifier: MIT */
/* What the files of the store share; for device_store*.c and store_adopt.c only. */
#pragma once

#include "ublkd/store/device_news.h"
#include "ublkd/store/device_store.h"
#include "ublkd/store/store_entries.h"
#include "ublkd/store/store_subscribers.h"

struct device_store {
        const struct device_backend *backend;
        void *context;
        struct store_entries entries;
        uint64_t revision;
        struct store_stamp stamp; /* as the backend has it */
        struct event_log *events;
        struct store_subscribers subscribers;
        bool gone; /* see device_store_is_gone() */
};

/* Calls the subscribers. After the change; `event` is what came of it, or NULL. */
void device_store_announce(struct device_store *store, enum store_event_kind kind,
        const struct store_entry *entry, const struct device_event *event);

/* Makes `record`, and an event of it when there is news, durable as the next revision, which is stored into
 * it. The event, or NULL, in *ret. 0 or -errno: nothing has changed. */
int device_store_save(struct device_store *store, struct device_record *record, const char *text,
        const struct device_news *news, const struct device_event **ret);

/* Saves `changed`, a copy of the entry's record in which only values differ, takes it over and announces it.
 * `reason` and `message` make an event of it, which a client asked for; REASON_NONE: no event. 0 or the
 * backend's; nothing has changed then. */
int device_store_update(struct device_store *store, struct store_entry *entry, struct device_record *changed,
        enum condition_reason reason, const char *message);
