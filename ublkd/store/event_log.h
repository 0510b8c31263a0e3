/* SPDX-License-Identifier: MIT */
/* The events in memory, in the order of their revisions, limited in number and in age. Events beyond the limits
 * are compacted away; a client that has not seen them has to list again. An account with too many (a tenant, or all tenants
 * of one range of subordinate uids, or one device of the administrators) loses the oldest of its own, so that it does not push
 * out those of others. The store writes the events to the backend, at once or later. Runs on the supervisor's loop; no call suspends. */
#pragma once

#include "ublkd/model/device_event.h"
#include "ublkd/store/event_floors.h"

#include <stddef.h>

/* The uid of an event of a disk without a record. */
#define UID_OF_NO_DEVICE "00000000-0000-0000-0000-000000000000"

enum {
        EVENTS_MAX = 4096,
        EVENTS_OF_ACCOUNT_MAX = 512,  /* of an account */
        EVENTS_OF_ACCOUNT_KEPT = 256, /* the newest, when it has had more than that maximum */
        EVENT_AGE_MAX_SECONDS = 7 * 24 * 3600,
        EVENT_REPEAT_SECONDS = 10 * 60, /* the same event within that time is a repetition */
};

struct event_log;

/* Create an empty log. Return 0 or -ENOMEM. */
int event_log_new(struct event_log **ret);
struct event_log *event_log_free(struct event_log *log);

/* Return the first uid of those that count together with `uid`; without such, that. */
typedef uint32_t (*account_of_user)(void *userdata, uid_t uid);
/* Count the events of tenants together by `first`. Before the first call each tenant counts alone. Call it after
 * event_log_loaded(), for an earlier ublkd may have had another `first`, and again when `first` may answer otherwise: then no
 * tenant goes on from a revision up to which events of any account are gone. */
void event_log_set_accounts(struct event_log *log, account_of_user first, void *userdata);

/* Add a copy of a stored event, in any order; call event_log_loaded() after the last one. log: a struct
 * event_log, as userdata of the backend's load_events(). Return 0 or -ENOMEM. */
int event_log_load(void *log, const struct device_event *event);
void event_log_loaded(struct event_log *log, uint64_t compacted, uint64_t now);

/* Make an event of `happened`, which has device, uid, type, reason, message, labels, apart and last_at
 * (borrowed); this fills in the rest. revision: of the new event. A repetition continues the event that it
 * repeats. Adds nothing to the log yet. Return 0 or -ENOMEM. */
int event_log_make(struct event_log *log, const struct device_event *happened, uint64_t revision,
        struct device_event **ret);
/* Add the event of the last event_log_make() to the log, and take it over (NULL: do nothing). saved: the
 * backend has it. Cannot fail. */
void event_log_take(struct event_log *log, struct device_event *event, bool saved);

/* Return the number of events, and the event at `index`; index 0 is the oldest. */
size_t event_log_count(const struct event_log *log);
const struct device_event *event_log_at(const struct event_log *log, size_t index);
/* Return the index of the first event with a revision above `revision`; the count if there is none. */
size_t event_log_after(const struct event_log *log, uint64_t revision);

/* Where an event is that was made earlier, perhaps by an earlier ublkd. */
enum event_fate {
        EVENT_LOST,  /* nowhere: ublkd was killed before the backend had it */
        EVENT_WAITS, /* in the log, and not in the backend yet */
        EVENT_SAVED, /* in the backend, also as a part of its repetition, or compacted away */
};

/* Return the fate of the event with this revision. what: its device, uid, type and reason. */
enum event_fate event_log_fate(
        const struct event_log *log, const struct device_event *what, uint64_t revision);

/* Return the revision of the newest event; 0 if there is none. */
uint64_t event_log_newest(const struct event_log *log);

/* Return the highest revision up to which the events of all owners were compacted away; 0 if none were. */
uint64_t event_log_compacted(const struct event_log *log);
/* Return the highest revision that was compacted away of the events of the account of `tenant`, or, with NULL, of any event. */
uint64_t event_log_compacted_of(const struct event_log *log, const char *tenant);
/* Return up to where events of single accounts are gone. */
const struct event_floors *event_log_floors(const struct event_log *log);

/* Return how many events the backend does not have, and up to `size` of them in `ret`, oldest first. */
size_t event_log_unsaved(const struct event_log *log, const struct device_event **ret, size_t size);
/* Return whether events were compacted away since event_log_saved(), so that the backend still has them. */
bool event_log_has_dropped(const struct event_log *log);
/* Note that the backend has exactly the events of the log. */
void event_log_saved(struct event_log *log);
