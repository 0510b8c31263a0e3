/* SPDX-License-Identifier: MIT */
/* One HTTP request, from its headers to its reply. Private to api/.
 *
 * A handler never talks to the HTTP library: it sets request->reply, or has the request suspended (hold.h),
 * which then has a reply or runs again. So an error found early can be kept back
 * until the body has been read, and a reply can be made in an event. */
#pragma once

#include "api/http/access.h"
#include "api/api.h"
#include "api/http/connection.h"
#include "api/http/query.h"

#include <microhttpd.h>

enum {
        DEVICES_MAX = 10000,
        BODY_MAX = 1024 * 1024,
        BODY_DRAIN_MAX =
                16 * 1024 * 1024, /* many clients look for an answer only after they have sent it all */
        PATH_NAME_MAX = 128,      /* longer than any valid name */
};

enum method {
        METHOD_GET,
        METHOD_POST,
        METHOD_PUT,
        METHOD_PATCH,
        METHOD_DELETE,
        METHOD_OPTIONS,
        _METHOD_MAX,
        _METHOD_INVALID = -EINVAL
};

struct hold;
struct route;

struct reply {
        unsigned status; /* 0: none yet */
        char *body;      /* owned; NULL: none */
        const char *content_type;
        MHD_ContentReaderCallback read; /* of a stream, which has no other body; else NULL */
        void *userdata;                 /* for `read` */
        const char *authenticate;       /* WWW-Authenticate, or NULL */
        char allow[64], etag[64], location[PATH_NAME_MAX + 16]; /* "" : none */
        bool close;                                             /* the connection cannot be used any more */
};

/* The device whose new spec was tried, and can be served (held/spec_check.h). */
struct tried {
        char uid[UID_TEXT_SIZE]; /* "": none yet */
        uint64_t generation;
};

struct request {
        struct api *api;
        struct MHD_Connection *connection;
        struct connection *client;
        struct peer peer;
        enum method method;
        const struct route *route;
        char *path;               /* as it came, percent-encoded */
        char name[PATH_NAME_MAX]; /* what {name} stands for in this path */
        struct query query;
        char *body;                       /* NUL-terminated, body_size bytes before that */
        size_t body_size, body_allocated; /* body_size counts on when nothing is kept any more */
        struct reply reply;
        struct hold *hold; /* what it is suspended for, or was last; owned; NULL: nothing */
        bool suspended;
        struct tried tried;
        bool admitted;  /* api->admit() was asked */
        bool abandoned; /* the client has gone: close without a word */
        bool sent;
};

/* The value of a header, or NULL. */
const char *request_header(const struct request *request, const char *name);

/* How much the client would like an answer of that type: 0 (it cannot take it) to 1000. */
unsigned request_likes(const struct request *request, const char *type);

/* The first look at a request, when only its headers are known: sets a reply when they are enough to refuse
 * it. */
void request_begin(struct request *request, const char *method);
/* A piece of the body. 0; -EMSGSIZE: it is too large (sets a reply). */
int request_receive(struct request *request, const char *data, size_t size);
/* All is there: carries it out. Sets a reply, or has it suspended; then, unless a reply was set meanwhile, it
 * is called again. */
void request_finish(struct request *request);

/* The body as JSON. NULL when it is not; then there is a reply. */
cJSON *request_parse_body(struct request *request);

/* With its reply. NULL is fine. Returns NULL. */
struct request *request_free(struct request *request);
DEFINE_CLEANUP(struct request, request_free);
