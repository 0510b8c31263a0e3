/* SPDX-License-Identifier: MIT */
/* The clients' connections: who is on each, what it is doing and how long it may, and how many there can be.
 * Private to api/.
 *
 * The HTTP library only ends a connection on which nothing moves at all. A byte now and then would hold one
 * for ever, so each thing that a client does has an end of its own here. */
#pragma once

#include "api/http/access.h"

#include <microhttpd.h>
#include <systemd/sd-event.h>

enum {
        CONNECTIONS_MAX = 512,
        CONNECTIONS_KEPT = 64,       /* of them, only for those who may change things */
        CONNECTIONS_OF_A_USER = 128, /* who may not; everybody on TCP is one user, for nobody knows better */
};

enum connection_state {
        CONNECTION_IDLE,   /* between two requests, or in a request line */
        CONNECTION_HEAD,   /* sends the headers */
        CONNECTION_BODY,   /* sends the body */
        CONNECTION_HELD,   /* it is the server's turn, or the answer is a stream: no end is set here */
        CONNECTION_REPLY,  /* reads the answer */
        CONNECTION_CLOSED, /* shut down; the library will notice */
        _CONNECTION_STATE_MAX
};

struct api;
struct request;

struct connection {
        struct api *api;
        struct peer peer;
        int fd; /* the library's */
        enum connection_state state;
        size_t target_size; /* of the request line */
        bool target_has_space;
        struct request *request; /* or NULL */
        sd_event_source *deadline;
        struct connection *previous, *next; /* in api->clients; who is longest in his state comes first */
};

/* For the library's notifications of a new and a closed connection. NULL when out of memory: it is shut down.
 */
struct connection *connection_new(struct api *api, struct MHD_Connection *mhd);
struct connection *connection_free(struct connection *connection);

/* NULL when there was no memory for it. */
struct connection *connection_of(struct MHD_Connection *mhd);

/* A new state, which begins now. */
void connection_enter(struct connection *connection, enum connection_state state);

/* Whether `peer` may have one more. If he has too many, the one that was idle for longest is closed to make
 * room. */
bool connection_allowed(struct api *api, const struct peer *peer);

/* Closes the connection (of `peer`; NULL: of anybody) that was idle for longest, but not the one that came
 * last: it had no time yet to ask for anything. False when there is none. */
bool connection_close_idle(struct api *api, const struct peer *peer);

/* Writes a whole answer past the library, as far as it can be written at once: where it takes no reply any
 * more, or does not know the socket yet. Nothing can follow on this connection. */
void connection_write_last(int fd, unsigned status, const char *content_type, const char *body);
