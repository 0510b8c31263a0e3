/* SPDX-License-Identifier: MIT */
/* The server: the state that the files of api/ share, its start and its end. Private to api/. */
#pragma once

#include "api/http/audit.h"
#include "api/http/change_rate.h"
#include "api/http/connection.h"
#include "api/http/listen.h"
#include "api/http/readers_rest.h"
#include "api/http/reply_counts.h"
#include "api/http/request.h"

struct api {
        struct api_config config; /* the caller owns the strings; `listen` is not used after api_new() */
        sd_event *event;
        struct MHD_Daemon *daemon;
        sd_event_source *readable, *timeout, *run, *accept_again;
        struct listener *listeners;
        size_t listener_count;
        unsigned connections; /* the library's count */
        struct connection *clients, *last_client;
        const struct arrival *arrival;       /* that the library gets now; NULL: none */
        char token[TOKEN_TEXT_SIZE];         /* "" without TCP */
        const struct route *routes;          /* ends with a NULL path */
        uint64_t (*replies)[STATUS_CLASSES]; /* reply_counts.h */
        struct hold *holds;
        struct audit audit[_AUDIT_OF_MAX];
        struct change_rate changes; /* of tenants */
        /* Return true if a request can run now; else suspend it or set a reply. Called once for each request,
         * before its handler. */
        bool (*admit)(struct request *request);
        /* Return true if a request can go on now, whether it has a reply or not; else suspend or abandon it. Called once
         * for each request, before its handler. */
        bool (*take_turn)(struct request *request);
        /* Ask polkit about a request whose permission is wanted: suspend it, or set its permission or a reply. */
        void (*ask_permission)(struct request *request);
        struct shared_answer *shared;               /* sharing.h: the newest first */
        sd_event_source *shared_old;                /* NULL until the first one */
        sd_event_source *reader_turn, *reader_late; /* of reader_turns.h; NULL until the first one */
        struct reader_turn *reader_turns;           /* that wait; the newest first */
        uint32_t reader_account;                    /* that had the last turn */
        struct readers_rest readers_rest;
        sd_event_source *gather, *keep_alive; /* of the event streams (watch.h); NULL until the first one */
        bool subscribed;                      /* to the store */
};

/* Open the listening sockets and start the HTTP library, without accepting connections. Return 0, or -errno
 * like api_new(). */
int server_open(struct api *api, struct problem_list *problems);

/* Return whether of all users only root and the group of SocketGroup= can connect to each Unix socket. */
bool server_is_of_group(const struct api *api);

/* Start accepting connections. Return 0, or -errno like api_new(). */
int server_listen(struct api *api, struct problem_list *problems);

/* Listen again where a socket file was removed. Return how many were made, or -errno of the first that cannot be made. */
int server_listen_again(struct api *api);

/* Close every connection and socket. No request may be suspended. May follow a failed server_open(). */
void server_close(struct api *api);
