/* SPDX-License-Identifier: MIT */
/* HTTP to ublkd, over its Unix socket or TCP. */
#pragma once

#include "ublkctl/text/exit_status.h"
#include "ublkctl/client/settings.h"

#include "ublkd/base/cleanup.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

struct client;

struct request {
        const char *method, *path; /* path with its query, percent-encoded */
        const cJSON *body;         /* or NULL */
        const char *body_type;     /* NULL: application/json */
        const char *if_match;      /* an ETag, or NULL */
        bool if_none_match;        /* If-None-Match: * */
        /* Microseconds that the daemon may hold the answer, in addition to its own time. With `take`: limit
         * for the whole answer; 0: no limit. */
        uint64_t patience;
        /* Called about twice a second while the answer is outstanding; may use the client. False aborts the
         * request at once, with STATUS_FAILED and no message. May be NULL. */
        bool (*tick)(void *userdata);
        /* Gets the body of a good answer, piece by piece; false ends it. May be NULL. */
        bool (*take)(void *userdata, const char *data, size_t size);
        const char *last_event_id; /* with `take`, or NULL */
        void *userdata;
};

struct answer {
        long status;
        char *body; /* NUL-terminated, never NULL; "" if `take` got it */
        size_t size;
        cJSON *json;    /* the body parsed; NULL: it is not JSON */
        char etag[128]; /* "": none */
};

/* Create a client. On failure print the cause on stderr. Return STATUS_OK, _FAILED (the token, memory) or
 * _NOT_ALLOWED. The caller frees *ret with client_free(), which takes NULL and returns NULL. */
enum exit_status client_new(const struct settings *settings, struct client **ret);
struct client *client_free(struct client *client);

/* Abort requests from now on, with STATUS_FAILED and no message, while `fd` is readable (-1: stop that). The
 * caller keeps the descriptor. */
void client_abort_on(struct client *client, int fd);

/* Send a request and wait. STATUS_OK: there is an answer, of any HTTP status, which the caller clears with
 * answer_clear(). Else (_NO_DAEMON, _NOT_ALLOWED, _TIMED_OUT, _FAILED) there is none, and one sentence is on
 * stderr, unless `quiet`. */
enum exit_status client_ask(
        struct client *client, const struct request *request, bool quiet, struct answer *ret);
void answer_clear(struct answer *answer);

/* Send many requests (without tick and take), several at a time and in any order. `ret_statuses` and
 * `ret_answers` have one item for each; the caller clears all answers. If requests get no answer, print the
 * cause once, for the first. */
void client_ask_all(struct client *client, const struct request *requests, size_t count,
        enum exit_status *ret_statuses, struct answer *ret_answers);

#define _cleanup_answer_ _cleanup_(answer_clear)
