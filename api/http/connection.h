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

/* What clients of each kind (enum client_kind) may have together leaves more than a hundred connections for root: no
 * other client can take these. */
enum {
        CONNECTIONS_MAX = 512,
        CONNECTIONS_OF_TOKEN = 128,   /* over TCP, with the token */
        CONNECTIONS_OF_READERS = 128, /* of all users that may read */
        CONNECTIONS_OF_OTHERS = 32,   /* of all users that may not */
        CONNECTIONS_WITHOUT_TOKEN = 64,
        CONNECTIONS_OF_A_USER = 16,   /* that may read; of all tenants that count together */
        CONNECTIONS_OF_A_STRANGER = 4 /* a user that may not */
};

enum client_kind {
        CLIENT_CHANGES,  /* may change devices, over a Unix socket */
        CLIENT_TOKEN,    /* over TCP, and a request has had the token */
        CLIENT_READS,    /* may read, or is a tenant */
        CLIENT_STRANGER, /* may do neither */
        CLIENT_UNKNOWN,  /* over TCP, without the token so far */
        _CLIENT_KIND_MAX
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
        enum client_kind kind;
        uint64_t since;   /* the client connected; CLOCK_MONOTONIC, microseconds */
        size_t unsent;    /* bytes of the answer that the client has not read; 0: no answer */
        uint64_t entered; /* its state; the same clock */
        int fd;           /* the library owns it */
        enum connection_state state;
        char *target;       /* of the last request, with its query; owned; NULL: none, too long, or ENOMEM */
        size_t target_size; /* bytes of the request line */
        bool target_has_space;
        struct request *request; /* NULL: none; the library's callbacks own it */
        sd_event_source *deadline;
        struct connection *previous, *next; /* in api->clients, longest in its state first */
};

/* A socket that was accepted, until the library has it. */
struct arrival {
        int fd;
        struct peer peer;
};

/* Create a connection, when the library opens one, of api->arrival if it is that; connection_free() frees it when the
 * library closes it. Return NULL on failure, after shutting the socket down. */
struct connection *connection_new(struct api *api, struct MHD_Connection *mhd);
struct connection *connection_free(struct connection *connection);

/* Return the connection, or NULL if connection_new() failed. */
struct connection *connection_of(struct MHD_Connection *mhd);

/* Enter a state and start its deadline. */
void connection_enter(struct connection *connection, enum connection_state state);

/* Return whether `peer` may open one more connection. At the limit of its user, or of all clients of its kind, close
 * the one of these that has been idle for longest. Of clients over TCP without the token the oldest makes room, idle
 * or not; never one that has had the token. */
bool connection_allowed(struct api *api, const struct peer *peer);

/* Note that a request over TCP has had the token. Return false if there are too many such connections, and none is
 * idle. */
bool connection_has_token(struct connection *connection);

/* Return whether the client may change devices, and over TCP has had the token. */
bool connection_is_privileged(const struct connection *connection);

/* Return how many bytes of answers clients that may not change devices have not read; account: those of one, or NULL. */
size_t connection_unsent(const struct api *api, const uint32_t *account);

/* Close all connections of clients on Unix sockets whose rights come from a group, or that have none, whatever they do. */
void connection_close_others(struct api *api);

/* Close all connections of the account whose client has not read its answer for longest, and for a second at least. */
void connection_close_unread(struct api *api);

/* Close the connection that has been idle for longest. The newest one stays: its client has had no time to send a
 * request. Return false if there is none to close. */
bool connection_close_idle(struct api *api);

/* Write a whole answer to the socket past the library, as much as fits at once. For when the library takes no
 * reply any more, or does not know the socket yet. The connection is of no use afterwards. */
void connection_write_last(int fd, unsigned status, const char *content_type, const char *body);
