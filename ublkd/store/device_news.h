/* SPDX-License-Identifier: MIT */
/* The events of changes that the store itself sees. For the store only. */
#pragma once

#include "ublkd/store/device_store.h"

/* The event of a change, before it gets a revision. Borrows its texts. */
struct device_news {
        enum event_type type;
        enum condition_reason reason; /* REASON_NONE: the change makes no event */
        const char *message;
        const cJSON *labels; /* of the spec; NULL: none */
        bool asked;          /* a client asked for the change */
};

/* Return news of the device of `record`. */
struct device_news news_of(const struct device_record *record, enum event_type type,
        enum condition_reason reason, const char *message);
/* Return news of a new spec. before: the record until now; NULL: a new device. new_disk: the change needs a new
 * disk. */
struct device_news news_of_spec(
        const struct device_record *before, const struct device_spec *spec, bool new_disk);
/* Return news of the change from the status of `record` to `to`; REASON_NONE if phase and reason stay. */
struct device_news news_of_status(const struct device_record *record, const struct device_status *to);

/* Make the event of `news` with event_log_make(); *ret is NULL for REASON_NONE. Return 0 or -ENOMEM. */
int news_make(struct event_log *log, const struct device_record *record, const struct device_news *news,
        uint64_t revision, struct device_event **ret);
