/* SPDX-License-Identifier: MIT */
/* Something that happened to a device, in the user's words. Plain data; no I/O. */
#pragma once

#include "ublkd/model/device_status.h"

enum event_type { EVENT_NORMAL, EVENT_WARNING, _EVENT_TYPE_MAX };

enum {
        EVENT_MESSAGE_MAX = 1024, /* bytes, with the NUL; longer ones are cut */
};

/* The same thing happening again soon is one event with a count: it moves to a new revision, and keeps its
 * first one. */
struct device_event {
        uint64_t revision;          /* of the store, when it happened last */
        uint64_t first_revision;    /* and first: what an event is known by */
        uint64_t first_at, last_at; /* CLOCK_REALTIME, microseconds */
        uint64_t count;
        enum event_type type;
        char *device, *uid;
        enum condition_reason reason;
        char *message; /* a sentence: what happened, and what is done next */
        char *labels;  /* the device's labels then, a JSON object; NULL: none */
        bool asked;    /* somebody asked for it, and so it repeats nothing; not stored */
        bool unsaved;  /* the backend has not seen it as it is */
};

const char *event_type_to_string(enum event_type type);
/* EVENT_NORMAL for a text that is not known. */
enum event_type event_type_from_string(const char *text);

/* Deep copy. NULL when out of memory. */
struct device_event *device_event_copy(const struct device_event *event);
struct device_event *device_event_free(struct device_event *event);

/* The event as the API shows it. NULL when out of memory. */
cJSON *device_event_to_json(const struct device_event *event);
