/* SPDX-License-Identifier: MIT */
/* Answers that clients that may not change devices share. */
#include "api/http/sharing.h"

#include "api/http/etag.h"
#include "api/http/respond.h"
#include "api/http/routes.h"
#include "api/http/server.h"
#include "api/http/shared_answer.h"

#include "ublkd/base/clock.h"

#include <stdio.h>
#include <string.h>

enum {
        SHARED_USEC = 1000 * 1000,
        SHARED_MAX = 16,
        SHARED_BYTES_MAX = 8 * 1024 * 1024, /* of all; a larger one is not kept */
};

/* Drop an answer and all that are older. */
static void drop_from(struct shared_answer **link)
{
        struct shared_answer *next;

        for (struct shared_answer *answer = *link; answer; answer = next) {
                next = answer->next;
                shared_answer_unref(answer);
        }
        *link = NULL;
}

static void drop_old(struct api *api)
{
        struct shared_answer **link = &api->shared;
        uint64_t now = monotonic_now();

        while (*link && now - (*link)->made < SHARED_USEC)
                link = &(*link)->next;
        drop_from(link);
}

static void drop_surplus(struct api *api)
{
        struct shared_answer **link = &api->shared;
        size_t count = 0, bytes = 0;

        for (; *link; link = &(*link)->next) {
                bytes += strlen((*link)->body);
                if (++count > SHARED_MAX || bytes > SHARED_BYTES_MAX) {
                        drop_from(link);
                        return;
                }
        }
}

/* Answers that no client asks for again must not stay in memory. */
static int on_old(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct api *api = userdata;
        int r;

        drop_old(api);
        if (!api->shared)
                return 0;
        r = sd_event_source_set_time_relative(source, SHARED_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int plan_to_drop(struct api *api)
{
        int enabled = SD_EVENT_OFF, r;

        if (!api->shared_old)
                return sd_event_add_time_relative(
                        api->event, &api->shared_old, CLOCK_MONOTONIC, SHARED_USEC, 0, on_old, api);
        r = sd_event_source_get_enabled(api->shared_old, &enabled);
        if (r < 0 || enabled != SD_EVENT_OFF)
                return r;
        r = sd_event_source_set_time_relative(api->shared_old, SHARED_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(api->shared_old, SD_EVENT_ONESHOT);
}

static bool may_share(const struct request *request)
{
        return !connection_is_privileged(request->client) && !tenant_is_set(request->peer.tenant);
}

/* Print the route, its names and the query, as they were read: clients can write the same ones in many ways. NULL on ENOMEM.
 * The caller frees it. */
static char *key_of(const struct request *request)
{
        char *query = query_to_text(&request->query), *key = NULL;

        if (query
                && asprintf(&key, "%s\n%s\n%s\n%s", request->route->path, request->name, request->item, query)
                           < 0)
                key = NULL;
        free(query);
        return key;
}

bool sharing_reply(struct request *request)
{
        _cleanup_free_ char *key = may_share(request) ? key_of(request) : NULL;
        struct api *api = request->api;

        if (!key)
                return false;
        drop_old(api);
        for (struct shared_answer *answer = api->shared; answer; answer = answer->next)
                if (strcmp(answer->key, key) == 0) {
                        reply_shared(request, answer);
                        return true;
                }
        return false;
}

void sharing_keep(struct request *request)
{
        struct reply *reply = &request->reply;
        struct api *api = request->api;
        struct shared_answer *answer;

        if (!may_share(request) || reply->status != MHD_HTTP_OK || !reply->body || reply->shared)
                return;
        answer = calloc(1, sizeof(*answer));
        if (!answer)
                return;
        answer->key = key_of(request);
        if (!answer->key || plan_to_drop(api) < 0) {
                free(answer->key);
                free(answer);
                return;
        }
        etag_set(request);
        strcpy(answer->etag, reply->etag);
        answer->references = 2; /* of the list, and of the reply */
        answer->made = monotonic_now();
        answer->content_type = reply->content_type;
        answer->body = reply->body;
        answer->next = api->shared;
        api->shared = answer;
        reply->shared = answer;
        drop_surplus(api);
}

void sharing_stop(struct api *api)
{
        drop_from(&api->shared);
        api->shared_old = sd_event_source_disable_unref(api->shared_old);
}
