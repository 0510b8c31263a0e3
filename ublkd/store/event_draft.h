/* SPDX-License-Identifier: MIT */
/* The events of changes that the store itself sees. For the store only. */
#pragma once

#include "ublkd/store/device_record.h"
#include "ublkd/store/event_log.h"

/* The event of a change, before it gets a revision. Borrows its texts. */
struct event_draft {
        enum event_type type;
        enum condition_reason reason; /* REASON_NONE: the change makes no event */
        const char *message;
        const cJSON *labels; /* of the spec; NULL: none */
        bool apart; /* a client asked for the change, or it is the first of its kind in another way */
};

/* Return the draft for the device of `record`. */
struct event_draft draft_of(const struct device_record *record, enum event_type type,
        enum condition_reason reason, const char *message);
/* Return the draft for a new spec. before: the record until now; NULL: a new device. new_disk: the change
 * needs a new disk; by_file: a file asked for it. */
struct event_draft draft_of_spec(
        const struct device_record *before, const struct device_spec *spec, bool new_disk, bool by_file);
/* Return the draft for the change from the status of `record` to `to`; REASON_NONE if phase and reason
 * stay. */
struct event_draft draft_of_status(const struct device_record *record, const struct device_status *to);

/* Make the event of `draft` with event_log_make(); *ret is NULL for REASON_NONE. Return 0 or -ENOMEM. */
int draft_make(struct event_log *log, const struct device_record *record, const struct event_draft *draft,
        uint64_t revision, struct device_event **ret);
