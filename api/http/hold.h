/* SPDX-License-Identifier: MIT */
/* One suspended request. Private to api/.
 *
 * The HTTP library ignores a suspended connection, so it costs nothing. A hold suspends the request, resumes
 * it, and notices when its client leaves. The struct that has the hold as its first member (api/held/) knows
 * what the request waits for. The request owns it. */
#pragma once

#include "api/http/request.h"

struct hold;

struct hold_kind {
        /* Called from the loop when the client has left or the server stops. NULL: free the hold and end the
         * request without a reply. */
        void (*left)(struct hold *hold);
        /* Call hold_release() and free the whole struct. `hold` may be NULL. Return NULL. */
        struct hold *(*free)(struct hold *hold);
};

struct hold {
        const struct hold_kind *kind;
        struct request *request;
        sd_event_source *hangup;
        struct hold *next, **link; /* in api->holds; link is NULL when it is not in the list */
};

/* Make `hold` (zeroed) the request's, and free the request's earlier hold. On failure return -errno and
 * change nothing. */
int hold_attach(struct hold *hold, const struct hold_kind *kind, struct request *request);

/* Suspend the request of an attached hold. */
void hold_suspend(struct hold *hold);

/* Resume the request; do nothing if it is not suspended. */
void hold_resume(struct hold *hold);

/* Release the hold and resume its request, which runs again or has its reply. The request keeps the struct
 * and its content until another hold replaces it. */
void hold_end(struct hold *hold);

/* Remove the hold from the list and stop watching its client. May be called twice. */
void hold_release(struct hold *hold);

/* End every hold, so that the server can stop. */
void hold_abandon_all(struct api *api);

/* Return the first hold of a kind, or the next one of the same kind after `hold`. NULL: no more. */
struct hold *hold_first(const struct api *api, const struct hold_kind *kind);
struct hold *hold_next(const struct hold *hold);
size_t hold_count(const struct api *api, const struct hold_kind *kind);

/* Make the loop run the HTTP library: without threads it does not notice that a connection was resumed. The
 * run is deferred, because the caller may be inside the library. */
void api_run_soon(struct api *api);
