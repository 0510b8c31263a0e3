/* SPDX-License-Identifier: MIT */
/* What the files of api/ share: the state of the server. */
#pragma once

#include "api/http/connection.h"
#include "api/http/listen.h"
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
        char token[TOKEN_TEXT_SIZE]; /* "" without TCP */
        uint64_t (*replies)[5];      /* of each route, by class of the status: metrics_count_reply() */
        struct wait *waits;
        struct first_pass *first_passes; /* requests that wait for the first pass */
        struct disk_check *disk_checks;  /* that are pending */
        struct watch *watches;
        sd_event_source *gather, *keep_alive; /* of the watches; NULL until there is one */
        bool subscribed;
};

/* A suspended connection was resumed: without threads the library does not notice until it is run. Not from
 * here, for this may be called from within it. */
void api_run_soon(struct api *api);
