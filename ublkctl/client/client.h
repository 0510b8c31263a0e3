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
        /* Microseconds that the daemon may hold the answer, beside its own time; with `take`: how long the
         * answer may come in all, and 0 is without an end. */
        uint64_t patience;
        /* Called about twice a second while the answer is waited for; may use the client. False ends the
         * request at once, with STATUS_FAILED and without a word. Or NULL. */
        bool (*tick)(void *userdata);
        /* Takes the body of a good answer piece by piece, for as long as it comes; false ends it. Or NULL. */
        bool (*take)(void *userdata, const char *data, size_t size);
        const char *last_event_id; /* with `take`, or NULL */
        void *userdata;
};

struct answer {
        long status;
        char *body; /* NUL-terminated, never NULL; "" when `take` took it */
        size_t size;
        cJSON *json;    /* of the body, or NULL: it is none */
        char etag[128]; /* or "" */
};

/* Says on stderr what is wrong. STATUS_OK, _FAILED (the token, memory) or _NOT_ALLOWED. */
enum exit_status client_new(const struct settings *settings, struct client **ret);
struct client *client_free(struct client *client);

/* From now on a request ends at once, with STATUS_FAILED and without a word, while `fd` can be read from (-1:
 * none any more). The descriptor stays the caller's. */
void client_end_on(struct client *client, int fd);

/* STATUS_OK: there is an answer, of whatever status, to be released with answer_clear(). Else (_NO_DAEMON,
 * _NOT_ALLOWED, _TIMED_OUT, _FAILED) there is none, and one sentence was printed on stderr, unless `quiet`.
 */
enum exit_status client_ask(
        struct client *client, const struct request *request, bool quiet, struct answer *ret);
void answer_clear(struct answer *answer);

/* The same for many requests (without tick and take), several of them at a time; in which order they are
 * carried out is not known. `ret_statuses` and `ret_answers` have one for each; the answers are to be
 * released all. What there is no answer for is said once, for the first. */
void client_ask_all(struct client *client, const struct request *requests, size_t count,
        enum exit_status *ret_statuses, struct answer *ret_answers);

#define _cleanup_answer_ _cleanup_(answer_clear)
