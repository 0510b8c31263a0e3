/* SPDX-License-Identifier: MIT */
/* Requests of clients that may not change devices: one in a turn of the loop. */
#include "api/held/reader_turns.h"

#include "api/http/hold.h"
#include "api/http/server.h"

#include "ublkd/base/clock.h"

enum {
        LATE_USEC = 25 * 1000, /* a request runs after that time even if the loop is never idle */
        SHORT_USEC = 1000,     /* not worth a pause */
        UNSENT_OF_A_USER = 2 * 1024 * 1024, /* bytes; with as many, one more answer is not begun */
        UNSENT_OF_ALL = 16 * 1024 * 1024,   /* the same for all readers */
};

static struct hold *reader_turn_free(struct hold *hold)
{
        if (hold)
                hold_release(hold);
        free(hold);
        return NULL;
}

static const struct hold_kind reader_turn_kind = {.free = reader_turn_free};

static uint64_t rest_of_pause(const struct api *api)
{
        uint64_t now = monotonic_now();

        return api->readers_rest > now + SHORT_USEC ? api->readers_rest - now : 0;
}

/* Plan the next turn, if a request waits: when the loop is idle, or later if there is a pause or none could run. The
 * calls fail only in another process, or after the loop has ended. */
static void plan_turn(struct api *api, bool at_once)
{
        bool waits = hold_first(api, &reader_turn_kind) != NULL;
        uint64_t pause = waits ? rest_of_pause(api) : 0;
        int soon = waits && at_once && pause == 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF;

        (void)sd_event_source_set_enabled(api->reader_turn, soon);
        (void)sd_event_source_set_time_relative(api->reader_late, pause > 0 ? pause : LATE_USEC);
        (void)sd_event_source_set_enabled(api->reader_late, waits ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static bool can_run(const struct hold *hold)
{
        const struct request *request = hold->request;

        return connection_unsent(request->api, &request->peer.account) < UNSENT_OF_A_USER;
}

/* Return the request that has waited for longest among those that can run; NULL: there is none. New ones are first in
 * the list. */
static struct hold *oldest(const struct api *api)
{
        struct hold *last = NULL;

        for (struct hold *hold = hold_first(api, &reader_turn_kind); hold; hold = hold_next(hold))
                if (can_run(hold))
                        last = hold;
        return last;
}

static void give_turn(struct api *api)
{
        bool full = connection_unsent(api, NULL) >= UNSENT_OF_ALL;
        struct hold *hold = full || rest_of_pause(api) > 0 ? NULL : oldest(api);

        if (full)
                connection_close_unread(api);
        if (hold)
                hold_end(hold);
        plan_turn(api, hold != NULL);
}

static int on_idle(sd_event_source *source _unused_, void *userdata)
{
        give_turn(userdata);
        return 0;
}

static int on_late(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        give_turn(userdata);
        return 0;
}

static int prepare(struct api *api)
{
        int r = api->reader_turn ? 0 : sd_event_add_defer(api->event, &api->reader_turn, on_idle, api);

        if (r >= 0)
                r = sd_event_source_set_priority(api->reader_turn, SD_EVENT_PRIORITY_IDLE);
        if (r >= 0 && !api->reader_late)
                r = sd_event_add_time_relative(
                        api->event, &api->reader_late, CLOCK_MONOTONIC, LATE_USEC, SHORT_USEC, on_late, api);
        return r;
}

static int wait_for_turn(struct request *request)
{
        struct api *api = request->api;
        bool first = !hold_first(api, &reader_turn_kind);
        struct hold *hold = calloc(1, sizeof(*hold));
        int r = hold ? prepare(api) : -ENOMEM;

        if (r >= 0)
                r = hold_attach(hold, &reader_turn_kind, request);
        if (r < 0) {
                free(hold);
                return r;
        }
        hold_suspend(hold);
        (void)sd_event_source_set_enabled(api->reader_turn, SD_EVENT_ONESHOT);
        if (first)
                plan_turn(api, true);
        return 0;
}

bool reader_turn_take(struct request *request)
{
        if (connection_is_privileged(request->client))
                return true;
        if (wait_for_turn(request) < 0)
                request->abandoned = true;
        return false;
}

void reader_turns_stop(struct api *api)
{
        api->reader_turn = sd_event_source_disable_unref(api->reader_turn);
        api->reader_late = sd_event_source_disable_unref(api->reader_late);
}

size_t reader_turn_count(const struct api *api)
{
        return hold_count(api, &reader_turn_kind);
}
