/* SPDX-License-Identifier: MIT */
/* One HTTP request, from its headers to its reply. Private to api/.
 *
 * A handler never calls the HTTP library. It sets request->reply, or suspends the request (hold.h), which
 * then gets a reply or runs again. So the server can keep an early error until it has read the body, and an
 * event can make a reply. */
#pragma once

#include "api/http/access.h"
#include "api/http/config.h"
#include "api/http/connection.h"
#include "api/http/query.h"

#include <microhttpd.h>

enum {
        BODY_MAX = 1024 * 1024,
        BODY_ASKING_MAX =
                64
                * 1024, /* of a user without rights (tenants, and who asks polkit), who must not fill the memory */
        BODY_DRAIN_MAX =
                16 * 1024 * 1024, /* bytes; many clients read an answer only after they have sent all */
        PATH_NAME_MAX = 128,      /* longer than any valid name */
        RULE_PLACE_MAX = 160,     /* "FILE:LINE"; a longer one is cut */
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

/* What a request that changes devices still needs of polkit (permission.h). */
enum permission {
        PERMISSION_OF_CLIENT,  /* nothing: what the client may do decides */
        PERMISSION_WANTED,     /* an answer, once the body is complete */
        PERMISSION_ASKED,      /* the request is suspended until then */
        PERMISSION_REFUSED,    /* by polkit */
        PERMISSION_UNANSWERED, /* polkit does not run, did not answer, or was not asked */
        PERMISSION_GRANTED,    /* its headers have not been checked yet */
        PERMISSION_USED,       /* this request may change devices; its client's next one may not */
        _PERMISSION_MAX
};

struct api;
struct hold;
struct route;
struct shared_answer;

struct reply {
        unsigned status;              /* 0: none yet */
        char *body;                   /* NULL: none; owned, unless it is shared */
        struct shared_answer *shared; /* owns `body`; a reference; NULL: it is not shared */
        const char *content_type;
        MHD_ContentReaderCallback read; /* streams the body; NULL: `body` is the whole */
        void *userdata;                 /* for `read` */
        const char *authenticate;       /* WWW-Authenticate, or NULL */
        char allow[64], etag[64], location[PATH_NAME_MAX + 16]; /* "": none */
        char retry_after[12];                                   /* seconds; "": none */
        uint64_t generation; /* of the device that it shows; 0: it shows none */
        bool close;          /* the connection cannot be reused */
};

/* A device whose new spec passed its preflight (held/spec_check.h). */
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
        char *path;               /* as sent, percent-encoded */
        char name[PATH_NAME_MAX]; /* the {name} of the route, decoded */
        char item[PATH_NAME_MAX]; /* the {item} of the route, likewise */
        struct query query;
        char *body;                       /* NUL after body_size bytes; owned */
        size_t body_size, body_allocated; /* body_size counts on when ublkd discards the body */
        struct reply reply;
        struct hold *hold; /* its present or last hold; owned; NULL: none */
        bool suspended;
        struct tried tried;
        char *host_path; /* of the path that a client in a container has given (held/path_check.h); owned; NULL: not known */
        enum permission permission;
        char rule[RULE_PLACE_MAX]; /* of the policy, that decided; "": none */
        char *cgroup;              /* of the client, with which it was compared; owned; NULL: none */
        bool admitted;             /* api->admit() has been asked */
        bool in_turn;              /* api->take_turn() has been asked */
        uint64_t head_pause; /* after the look at the head, for all readers; none has waited for it yet */
        bool host_seen;      /* it has waited for a view of the host (held/wait.h) */
        bool last;           /* the connection ends with the answer: head_check.h */
        bool abandoned;      /* the client has left: close without a reply */
        bool sent;
};

/* Return the value of a header, or NULL. The library owns it. */
const char *request_header(const struct request *request, const char *name);

/* Return the client's preference for an answer of that type: 0 (not acceptable) to 1000. */
unsigned request_likes(const struct request *request, const char *type);

/* Check the headers of a request; set a reply if they are enough to refuse it. */
void request_begin(struct request *request, const char *method);
/* Take a piece of the body. Return 0; -EMSGSIZE with a reply: the body is too large. */
int request_receive(struct request *request, const char *data, size_t size);
/* Run the request, after its body is complete. Set a reply, suspend or abandon the request. Called again after each
 * suspension. */
void request_finish(struct request *request);

/* Return whether the client has sent a body. */
static inline bool request_has_body(const struct request *request)
{
        return request->body_size > 0;
}
/* Parse the body as JSON. Return the document, which the caller frees; or NULL with a reply. */
cJSON *request_parse_body(struct request *request);

/* Free the request, its reply and its hold. `request` may be NULL. Return NULL. */
struct request *request_free(struct request *request);
DEFINE_CLEANUP(struct request, request_free);
