/* SPDX-License-Identifier: MIT */
/* A request waits for the first pass at most once. */
#include "api/held/first_pass.h"

#include "api/http/respond.h"
#include "api/http/routes.h"
#include "api/http/server.h"

/* A worker that is stopped is waited for by the reconciler for 5 s; then the pass goes on without it. */
enum { FIRST_PASS_USEC = 7 * 1000 * 1000 };

struct first_pass {
        struct request *request;
        sd_event_source *timer, *hangup;
        struct first_pass *next, **link; /* in api->first_passes; link is NULL when it is not there */
};

static void end_pending(struct first_pass *pass)
{
        pass->timer = sd_event_source_disable_unref(pass->timer);
        pass->hangup = sd_event_source_disable_unref(pass->hangup);
        if (!pass->link)
                return;
        *pass->link = pass->next;
        if (pass->next)
                pass->next->link = pass->link;
        pass->link = NULL;
}

struct first_pass *first_pass_free(struct first_pass *pass)
{
        if (!pass)
                return NULL;
        end_pending(pass);
        free(pass);
        return NULL;
}

bool first_pass_is_pending(const struct request *request)
{
        return request->first_pass && request->first_pass->link;
}

/* The request runs, or ends. */
static void resume(struct first_pass *pass)
{
        struct request *request = pass->request;

        end_pending(pass);
        MHD_resume_connection(request->connection);
        api_run_soon(request->api);
}

static int on_timeout(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        resume(userdata);
        return 0;
}

static int on_hangup(
        sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_, void *userdata)
{
        struct first_pass *pass = userdata;

        pass->request->abandoned = true;
        resume(pass);
        return 0;
}

static int suspend(struct request *request)
{
        struct api *api = request->api;
        struct first_pass *pass = request->first_pass = calloc(1, sizeof(*pass));
        int r;

        if (!pass)
                return -ENOMEM;
        pass->request = request;
        r = sd_event_add_time_relative(
                api->event, &pass->timer, CLOCK_MONOTONIC, FIRST_PASS_USEC, 1000, on_timeout, pass);
        if (r >= 0)
                r = request_watch_client(request, on_hangup, pass, &pass->hangup);
        if (r < 0)
                return r;
        pass->next = api->first_passes;
        pass->link = &api->first_passes;
        if (pass->next)
                pass->next->link = &pass->next;
        api->first_passes = pass;
        MHD_suspend_connection(request->connection);
        return 0;
}

bool first_pass_await(struct request *request)
{
        const struct api_config *config = &request->api->config;
        int r;

        if ((request->route->flags & ROUTE_ANY_TIME) || request->first_pass || !config->is_ready
                || config->is_ready(config->userdata))
                return true;
        r = suspend(request);
        if (r < 0) {
                request->first_pass = first_pass_free(request->first_pass);
                reply_error(request, r,
                        "ublkd has not looked at every device yet, and that cannot be waited for");
        }
        return false;
}

void api_settled(struct api *api)
{
        while (api->first_passes)
                resume(api->first_passes);
}

size_t first_pass_count(const struct api *api)
{
        size_t count = 0;

        for (const struct first_pass *pass = api->first_passes; pass; pass = pass->next)
                count++;
        return count;
}

void first_pass_abandon_all(struct api *api)
{
        while (api->first_passes) {
                api->first_passes->request->abandoned = true;
                resume(api->first_passes);
        }
}
