/* SPDX-License-Identifier: MIT */
/* GET /events as a stream: Server-Sent Events.
 *
 * A watch is a position in the log of events, and the log is its buffer: a client that reads slowly costs
 * nothing, and one that has fallen out of the log's bounds is cut off and finds out by resuming. Between
 * events the connection is suspended. Runs on the supervisor's loop. */
#pragma once

#include "api/http/request.h"

enum {
        WATCHES_MAX = 64,
        WATCHES_KEPT = 16,      /* of them, only for those who may change things */
        WATCHES_OF_A_USER = 16, /* who may not */
};

/* Makes the reply a stream of the events after `revision` that request->query asks for, or sets a reply that
 * says why not. */
void watch_begin(struct request *request, uint64_t revision);

/* For the store: to be subscribed with the api as userdata. */
void watch_on_store_event(void *userdata, const struct store_event *event);

/* Free what all watches share, so that the server can stop. */
void watch_stop(struct api *api);

/* How many clients watch. */
size_t watch_count(const struct api *api);
