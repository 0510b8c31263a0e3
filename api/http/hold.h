/* SPDX-License-Identifier: MIT */
/* One suspended request. Private to api/.
 *
 * A suspended connection is out of the HTTP library's sight and costs nothing. A hold suspends it, resumes
 * it, and sees when its client leaves. What the request waits for is the business of the struct that has the
 * hold as its first member (api/held/); the request owns it. */
#pragma once

#include "api/http/request.h"

struct hold;

struct hold_kind {
        /* The client has left, or the server stops. NULL: the hold is freed and the request ends without a
         * reply. */
        void (*left)(struct hold *hold);
        /* Calls hold_release(). Takes NULL. Returns NULL. */
        struct hold *(*free)(struct hold *hold);
};

struct hold {
        const struct hold_kind *kind;
        struct request *request;
        sd_event_source *hangup;
        struct hold *next, **link; /* in api->holds; link is NULL when it is not there */
};

/* Make `hold` (zeroed) the request's; the hold that it had before is freed. 0; -errno: nothing has changed.
 */
int hold_attach(struct hold *hold, const struct hold_kind *kind, struct request *request);

/* Suspend the request of an attached hold. */
void hold_suspend(struct hold *hold);

/* Resume it; nothing happens when it is not suspended. */
void hold_resume(struct hold *hold);

/* Release the hold and resume its request, which now runs again or has its reply. The request keeps the hold
 * for what is in it, until another one takes its place. */
void hold_end(struct hold *hold);

/* Take the hold out of the list and stop looking at its client. Harmless when that was done. */
void hold_release(struct hold *hold);

/* End every hold, so that the server can stop. */
void hold_abandon_all(struct api *api);

/* The first one of a kind, and the one after `hold`; NULL: there is none. */
struct hold *hold_first(const struct api *api, const struct hold_kind *kind);
struct hold *hold_next(const struct hold *hold);
size_t hold_count(const struct api *api, const struct hold_kind *kind);

/* Have the HTTP library run: without threads it does not notice by itself that a connection was resumed. Not
 * from here, for this may be called from within it. */
void api_run_soon(struct api *api);
