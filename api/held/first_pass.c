/* SPDX-License-Identifier: MIT */
/* Suspend requests until the first pass is over, each at most once. */
#include "api/held/first_pass.h"

#include "api/http/hold.h"
#include "api/http/respond.h"
#include "api/http/routes.h"
#include "api/http/server.h"

/* The reconciler waits up to 5 s for a worker that is stopped; then the pass goes on without it. */
enum { FIRST_PASS_USEC = 7 * 1000 * 1000 };

struct first_pass {
        struct hold hold; /* first member */
        sd_event_source *timer;
};

static struct first_pass *first_pass_of(struct hold *hold)
{
        return (struct first_pass *)hold;
}

static struct hold *first_pass_free(struct hold *hold)
{
        struct first_pass *pass = first_pass_of(hold);

        if (!pass)
                return NULL;
        hold_release(hold);
        sd_event_source_disable_unref(pass->timer);
        free(pass);
        return NULL;
}

static const struct hold_kind first_pass_kind = {.free = first_pass_free};

/* Let the request run. */
static void first_pass_end(struct first_pass *pass)
{
        pass->timer = sd_event_source_disable_unref(pass->timer);
        hold_end(&pass->hold);
}

static int on_timeout(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        first_pass_end(userdata);
        return 0;
}

static int suspend(struct request *request)
{
        struct first_pass *pass = calloc(1, sizeof(*pass));
        int r;

        if (!pass)
                return -ENOMEM;
        r = sd_event_add_time_relative(
                request->api->event, &pass->timer, CLOCK_MONOTONIC, FIRST_PASS_USEC, 1000, on_timeout, pass);
        if (r >= 0)
                r = hold_attach(&pass->hold, &first_pass_kind, request);
        if (r >= 0)
                hold_suspend(&pass->hold);
        else
                first_pass_free(&pass->hold);
        return r;
}

bool first_pass_admit(struct request *request)
{
        const struct api_config *config = &request->api->config;
        int r;

        if ((request->route->flags & ROUTE_ANY_TIME) || !config->is_ready
                || config->is_ready(config->userdata))
                return true;
        r = suspend(request);
        if (r < 0)
                reply_error(request, r, "Cannot wait until ublkd has looked at every device");
        return false;
}

void first_pass_done(struct api *api)
{
        for (struct hold *hold = hold_first(api, &first_pass_kind), *next; hold; hold = next) {
                next = hold_next(hold);
                first_pass_end(first_pass_of(hold));
        }
}

size_t first_pass_count(const struct api *api)
{
        return hold_count(api, &first_pass_kind);
}
