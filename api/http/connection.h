/* SPDX-License-Identifier: MIT */
/* The clients' connections: the client, the state and the deadline of each, and how many there can be.
 * Private to api/.
 *
 * The HTTP library closes a connection only if no byte moves at all. A client that sends one byte now and
 * then would keep it for ever, so each state has a deadline here. */
#pragma once

#include "api/http/access.h"

#include <microhttpd.h>
#include <systemd/sd-event.h>

enum {
        CONNECTIONS_MAX = 512,
        CONNECTIONS_KEPT = 64,       /* of them, only for clients that may change devices */
        CONNECTIONS_OF_A_USER = 128, /* that may not change devices; all of TCP counts as one user */
};

enum connection_state {
        CONNECTION_IDLE,   /* between two requests, or inside a request line */
        CONNECTION_HEAD,   /* the client sends the headers */
        CONNECTION_BODY,   /* the client sends the body */
        CONNECTION_HELD,   /* the server works on the answer, or streams it: no deadline */
        CONNECTION_REPLY,  /* the client reads the answer */
        CONNECTION_CLOSED, /* shut down; the library will notice */
        _CONNECTION_STATE_MAX
};

struct api;
struct request;

struct connection {
        struct api *api;
        struct peer peer;
        int fd; /* the library owns it */
        enum connection_state state;
        size_t target_size; /* bytes of the request line */
        bool target_has_space;
        struct request *request; /* NULL: none; the library's callbacks own it */
        sd_event_source *deadline;
        struct connection *previous, *next; /* in api->clients, longest in its state first */
};

/* Create a connection, when the library opens one; connection_free() frees it when the library closes it.
 * Return NULL on failure, after shutting the socket down. */
struct connection *connection_new(struct api *api, struct MHD_Connection *mhd);
struct connection *connection_free(struct connection *connection);

/* Return the connection, or NULL if connection_new() failed. */
struct connection *connection_of(struct MHD_Connection *mhd);

/* Enter a state and start its deadline. */
void connection_enter(struct connection *connection, enum connection_state state);

/* Return whether `peer` may open one more connection. At the limit of its user, close that user's connection
 * that has been idle for longest. */
bool connection_allowed(struct api *api, const struct peer *peer);

/* Close the connection that has been idle for longest, of `peer` (NULL: of any peer). The newest connection
 * stays: its client has had no time to send a request. Return false if there is none to close. */
bool connection_close_idle(struct api *api, const struct peer *peer);

/* Write a whole answer to the socket past the library, as much as fits at once. For when the library takes no
 * reply any more, or does not know the socket yet. The connection is of no use afterwards. */
void connection_write_last(int fd, unsigned status, const char *content_type, const char *body);
