/* SPDX-License-Identifier: MIT */
/* An event of a device, as clients read it. Plain data; no I/O. */
#pragma once

#include "ublkd/model/device_status.h"
#include "ublkd/model/tenant.h"

enum event_type { EVENT_NORMAL, EVENT_WARNING, _EVENT_TYPE_MAX };

enum {
        EVENT_MESSAGE_MAX = 1024, /* bytes, with the NUL; longer messages are cut */
};

/* A repetition within EVENT_REPEAT_SECONDS raises the count of the event: the event gets a new revision, and
 * keeps its first one. */
struct device_event {
        uint64_t revision;          /* of the store, at the last repetition */
        uint64_t first_revision;    /* at the first one: identifies the event */
        uint64_t first_at, last_at; /* CLOCK_REALTIME, microseconds */
        uint64_t count;
        enum event_type type;
        char *device, *uid;
        enum condition_reason reason;
        char *message;            /* a sentence: what happened, and what is done next */
        char *labels;             /* of the device at that time, a JSON object; NULL: none */
        char tenant[TENANT_SIZE]; /* of the device; not shown: it decides who may see the event */
        /* The key of the events that count together with this one, when it happened: the first tenant of these, or a device
         * of the administrators. In a draft: not set. */
        char account[TENANT_SIZE];
        bool apart;   /* it repeats no other event, as one that a client has caused; not stored */
        bool unsaved; /* the backend has no copy, or an older one */
};

const char *event_type_to_string(enum event_type type);
/* Return the type; EVENT_NORMAL for an unknown text. */
enum event_type event_type_from_string(const char *text);

/* Return a deep copy, or NULL on ENOMEM. */
struct device_event *device_event_copy(const struct device_event *event);
struct device_event *device_event_free(struct device_event *event);

/* Return the event as the API shows it, or NULL on ENOMEM. The caller frees it. */
cJSON *device_event_to_json(const struct device_event *event, enum reader reader);
