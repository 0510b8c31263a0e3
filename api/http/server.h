/* SPDX-License-Identifier: MIT */
/* The server: its state, which the files of api/ share, and its life. Private to api/. */
#pragma once

#include "api/http/connection.h"
#include "api/http/listen.h"
#include "api/http/reply_counts.h"
#include "api/http/request.h"

struct api {
        struct api_config
                config; /* strings are the caller's; listen addresses are not looked at after api_new() */
        sd_event *event;
        struct MHD_Daemon *daemon;
        sd_event_source *readable, *timeout, *run, *accept_again;
        struct listener *listeners;
        size_t listener_count;
        unsigned connections; /* as the library counts them */
        struct connection *clients, *last_client;
        char token[TOKEN_TEXT_SIZE];         /* "" without TCP */
        const struct route *routes;          /* ends with a path that is NULL */
        uint64_t (*replies)[STATUS_CLASSES]; /* reply_counts.h */
        struct hold *holds;
        /* Whether a request can be carried out now; false: it is suspended, or there is a reply. Asked once
         * for each request, before its handler is called. */
        bool (*admit)(struct request *request);
        sd_event_source *gather,
                *keep_alive; /* of the streams of events (watch.h); NULL until there is one */
        bool subscribed;     /* to the store */
};

/* Open the listening sockets and start the HTTP library; nobody is answered yet. 0, or -errno as api_new().
 */
int server_open(struct api *api, struct problem_list *problems);

/* Start to accept connections. 0, or -errno as api_new(). */
int server_listen(struct api *api, struct problem_list *problems);

/* Close every connection and socket. No request may be suspended. Harmless after a failed server_open(). */
void server_close(struct api *api);
