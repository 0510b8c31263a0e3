/* SPDX-License-Identifier: MIT */
/* The events that are kept: in memory, in the order of their revisions, bounded by number and by age. What
 * falls out of the bounds is compacted away: who has seen less than that has missed something and is to list
 * again. Written through or behind by the store. Runs on the supervisor's loop; nothing suspends. */
#pragma once

#include "ublkd/model/device_event.h"

#include <stddef.h>

enum {
        EVENTS_MAX = 4096,
        EVENT_AGE_MAX_SECONDS = 7 * 24 * 3600,
        EVENT_REPEAT_SECONDS = 10 * 60, /* the same again within that is a repetition */
};

struct event_log;

/* An empty log. 0 or -ENOMEM. */
int event_log_new(struct event_log **ret);
struct event_log *event_log_free(struct event_log *log);

/* One that was stored, in any order; end with event_log_loaded(). Copies. 0 or -ENOMEM. For a backend's
 * load_events(): `log` is a struct event_log. */
int event_log_load(void *log, const struct device_event *event);
void event_log_loaded(struct event_log *log, uint64_t compacted, uint64_t now);

/* Makes the event that `happened` comes to: device, uid, type, reason, message, labels, asked and last_at are
 * given (lent), the rest is filled in; `revision` is its own. A repetition continues the event that it
 * repeats. Nothing is kept yet. Returns 0 or -ENOMEM. */
int event_log_make(struct event_log *log, const struct device_event *happened, uint64_t revision,
        struct device_event **ret);
/* Keeps what event_log_make() made (NULL: nothing); no other may have been made in between. `saved`: the
 * backend has it. Cannot fail. */
void event_log_take(struct event_log *log, struct device_event *event, bool saved);

/* How many are kept, and the one at `index`, the oldest first. */
size_t event_log_count(const struct event_log *log);
const struct device_event *event_log_at(const struct event_log *log, size_t index);
/* The index of the first one whose revision is above `revision`; the count when there is none. */
size_t event_log_after(const struct event_log *log, uint64_t revision);

/* The revision of the newest one; 0: there is none. */
uint64_t event_log_newest(const struct event_log *log);

/* The highest revision that is not kept any more; 0: none was dropped. */
uint64_t event_log_compacted(const struct event_log *log);

/* Those that the backend has not seen, oldest first: the count, and up to `size` of them in `ret`. */
size_t event_log_unsaved(const struct event_log *log, const struct device_event **ret, size_t size);
/* Whether the backend keeps events that were compacted away since event_log_saved(). */
bool event_log_has_dropped(const struct event_log *log);
/* The backend has them all, and no others. */
void event_log_saved(struct event_log *log);
