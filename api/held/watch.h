/* SPDX-License-Identifier: MIT */
/* Stream GET /events as Server-Sent Events.
 *
 * A watch is a position in the event log, and the log is its buffer, so a client that reads slowly costs no
 * memory. When the log has dropped the client's next event, ublkd disconnects the client, which learns of the
 * gap when it resumes. Between events the connection is suspended. Runs on the supervisor's loop. */
#pragma once

#include "api/http/request.h"

enum {
        WATCHES_MAX = 64,
        WATCHES_KEPT = 16,     /* of them, only for clients that may change devices */
        WATCHES_OF_A_USER = 8, /* that may not change devices */
};

/* Make the reply a stream of the events after `revision` that match request->query; or set a reply that names
 * the cause. */
void watch_begin(struct request *request, uint64_t revision);

/* Subscribe this to the store, with the api as userdata. */
void watch_on_store_event(void *userdata, const struct store_event *event);

/* Free what all watches share, so that the server can stop. */
void watch_stop(struct api *api);

/* Return how many clients watch. */
size_t watch_count(const struct api *api);
