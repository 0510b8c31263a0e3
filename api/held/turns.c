/* SPDX-License-Identifier: MIT */
/* Run a piece of work in each turn of the loop. */
#include "api/held/turns.h"

#include "api/http/hold.h"
#include "api/http/respond.h"
#include "api/http/server.h"

struct turns {
        struct hold hold; /* first member */
        sd_event_source *source;
        const struct turns_kind *kind;
        void *work;
};

static struct hold *turns_free(struct hold *hold)
{
        struct turns *turns = (struct turns *)hold;

        if (!turns)
                return NULL;
        hold_release(hold);
        sd_event_source_disable_unref(turns->source);
        turns->kind->free(turns->work);
        free(turns);
        return NULL;
}

static const struct hold_kind turns_hold = {.free = turns_free};

static int on_turn(sd_event_source *source, void *userdata)
{
        struct turns *turns = userdata;

        if (turns->kind->piece(turns->hold.request, turns->work))
                return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        turns->source = sd_event_source_disable_unref(turns->source);
        hold_end(&turns->hold);
        return 0;
}

static int begin(struct request *request, struct turns *turns)
{
        int r = sd_event_add_defer(request->api->event, &turns->source, on_turn, turns);

        if (r >= 0) /* other event sources go first */
                r = sd_event_source_set_priority(turns->source, SD_EVENT_PRIORITY_NORMAL + 1);
        return r < 0 ? r : hold_attach(&turns->hold, &turns_hold, request);
}

void turns_begin(struct request *request, const struct turns_kind *kind, void *work)
{
        struct turns *turns = calloc(1, sizeof(*turns));
        int r = -ENOMEM;

        if (turns) {
                *turns = (struct turns){.kind = kind, .work = work};
                r = begin(request, turns);
        } else
                kind->free(work);
        if (r >= 0) {
                hold_suspend(&turns->hold);
                return;
        }
        if (turns)
                (void)turns_free(&turns->hold);
        reply_error(request, r, "Cannot begin the work");
}
