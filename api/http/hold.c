/* SPDX-License-Identifier: MIT */
/* Suspended requests. */
#include "api/http/hold.h"

#include "api/http/server.h"

#include <sys/epoll.h>

void api_run_soon(struct api *api)
{
        (void)sd_event_source_set_enabled(api->run, SD_EVENT_ONESHOT); /* fails only in another process */
}

static void resume(struct request *request)
{
        request->suspended = false;
        MHD_resume_connection(request->connection);
        api_run_soon(request->api);
}

void hold_suspend(struct hold *hold)
{
        hold->request->suspended = true;
        MHD_suspend_connection(hold->request->connection);
}

void hold_resume(struct hold *hold)
{
        if (hold->request->suspended)
                resume(hold->request);
}

void hold_release(struct hold *hold)
{
        hold->hangup = sd_event_source_disable_unref(hold->hangup);
        if (!hold->link)
                return;
        *hold->link = hold->next;
        if (hold->next)
                hold->next->link = hold->link;
        hold->next = NULL;
        hold->link = NULL;
}

void hold_end(struct hold *hold)
{
        hold_release(hold);
        hold_resume(hold);
}

static void abandon(struct hold *hold)
{
        struct request *request = hold->request;

        if (hold->kind->left) {
                hold->kind->left(hold);
                return;
        }
        request->hold = hold->kind->free(hold);
        request->abandoned = true;
        resume(request);
}

static int on_hangup(sd_event_source *source, int fd _unused_, uint32_t events _unused_, void *userdata)
{
        (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
        abandon(userdata);
        return 0;
}

/* The HTTP library ignores a suspended connection, so only this event source can see that the client
 * leaves. */
static int watch_client(struct hold *hold, struct request *request)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        /* On a Unix socket, closing one direction differs from leaving; on TCP the two look the same. */
        uint32_t events = request->peer.tcp ? EPOLLRDHUP : 0;

        return info ? sd_event_add_io(
                              request->api->event, &hold->hangup, info->connect_fd, events, on_hangup, hold)
                    : -ENOTCONN;
}

int hold_attach(struct hold *hold, const struct hold_kind *kind, struct request *request)
{
        struct api *api = request->api;
        int r = watch_client(hold, request);

        if (r < 0)
                return r;
        if (request->hold)
                request->hold->kind->free(request->hold);
        request->hold = hold;
        hold->kind = kind;
        hold->request = request;
        hold->next = api->holds;
        hold->link = &api->holds;
        if (hold->next)
                hold->next->link = &hold->next;
        api->holds = hold;
        return 0;
}

void hold_abandon_all(struct api *api)
{
        for (struct hold *hold = api->holds, *next; hold; hold = next) {
                next = hold->next;
                abandon(hold);
        }
}

static struct hold *first_of(struct hold *hold, const struct hold_kind *kind)
{
        while (hold && hold->kind != kind)
                hold = hold->next;
        return hold;
}

struct hold *hold_first(const struct api *api, const struct hold_kind *kind)
{
        return first_of(api->holds, kind);
}

struct hold *hold_next(const struct hold *hold)
{
        return first_of(hold->next, hold->kind);
}

size_t hold_count(const struct api *api, const struct hold_kind *kind)
{
        size_t count = 0;

        for (const struct hold *hold = hold_first(api, kind); hold; hold = hold_next(hold))
                count++;
        return count;
}
