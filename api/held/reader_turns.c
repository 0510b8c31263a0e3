/* SPDX-License-Identifier: MIT */
/* Work for clients that may not change devices: one piece in a turn of the loop. */
#include "api/held/reader_turns.h"

#include "api/http/hold.h"
#include "api/http/readers_rest.h"
#include "api/http/server.h"
#include "ublkd/base/clock.h"

enum {
        LATE_USEC = 25 * 1000, /* a piece runs after that time even if the loop is never idle */
        LATE_ACCURACY_USEC = 1000,
        UNSENT_OF_A_USER = 2 * 1024 * 1024, /* bytes; with as many, one more answer is not begun */
        UNSENT_OF_ALL = 16 * 1024 * 1024,   /* the same for all readers */
};

/* A request that waits for its turn. */
struct waiting {
        struct hold hold; /* first member */
        struct reader_turn turn;
};

static struct hold *waiting_free(struct hold *hold)
{
        struct waiting *waiting = (struct waiting *)hold;

        if (!waiting)
                return NULL;
        reader_turn_leave(&waiting->turn);
        hold_release(hold);
        free(waiting);
        return NULL;
}

static const struct hold_kind waiting_kind = {.free = waiting_free};

static uint64_t own_pause_left(const struct reader_turn *turn, uint64_t now)
{
        const struct request *request = turn->request;

        return readers_rest_left_of(&request->api->readers_rest, request->peer.account, now);
}

/* Return how long all that wait for a turn have to rest, in microseconds. */
static uint64_t pause_left(const struct api *api)
{
        uint64_t now = monotonic_now(), all = readers_rest_left(&api->readers_rest, now), own = UINT64_MAX;

        for (const struct reader_turn *turn = api->reader_turns; turn && own > all; turn = turn->next) {
                uint64_t left = own_pause_left(turn, now);

                own = left < own ? left : own;
        }
        return own > all && own < UINT64_MAX ? own : all;
}

/* Plan the next turn, if one is waited for: when the loop is idle, or later if there is a pause or none could run. The
 * calls fail only in another process, or after the loop has ended. */
static void plan_turn(struct api *api, bool at_once)
{
        bool waits = api->reader_turns != NULL;
        uint64_t pause = waits ? pause_left(api) : 0;
        int soon = waits && at_once && pause == 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF;

        (void)sd_event_source_set_enabled(api->reader_turn, soon);
        (void)sd_event_source_set_time_relative(api->reader_late, pause > 0 ? pause : LATE_USEC);
        (void)sd_event_source_set_enabled(api->reader_late, waits ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static bool can_run(const struct reader_turn *turn)
{
        const struct request *request = turn->request;

        return own_pause_left(turn, monotonic_now()) == 0
               && connection_unsent(request->api, &request->peer.account) < UNSENT_OF_A_USER;
}

/* Return how far the account is from the last one that had a turn. Turns go by the numbers of the accounts, and after the
 * highest the lowest comes, so none has two before another one that waits has one. */
static uint32_t distance(const struct reader_turn *turn)
{
        return turn->request->peer.account - turn->request->api->reader_account - 1;
}

/* Return the oldest one of the nearest account that is at least so far away; NULL: there is none. */
static struct reader_turn *nearest(const struct api *api, uint32_t least)
{
        struct reader_turn *found = NULL;

        for (struct reader_turn *turn = api->reader_turns; turn; turn = turn->next)
                if (distance(turn) >= least && (!found || distance(turn) <= distance(found)))
                        found = turn;
        return found;
}

/* Return the next one that can run; NULL: there is none. */
static struct reader_turn *next_in_turn(const struct api *api)
{
        struct reader_turn *turn = nearest(api, 0);

        while (turn && !can_run(turn)) /* nor can others of that account */
                turn = distance(turn) < UINT32_MAX ? nearest(api, distance(turn) + 1) : NULL;
        return turn;
}

static void give_turn(struct api *api)
{
        bool full = connection_unsent(api, NULL) >= UNSENT_OF_ALL;
        struct reader_turn *turn =
                full || readers_rest_left(&api->readers_rest, monotonic_now()) > 0 ? NULL : next_in_turn(api);

        if (full)
                connection_close_unread(api);
        if (turn) {
                api->reader_account = turn->request->peer.account;
                reader_turn_leave(turn);
                turn->run(turn);
        }
        plan_turn(api, turn != NULL);
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
                r = sd_event_add_time_relative(api->event, &api->reader_late, CLOCK_MONOTONIC, LATE_USEC,
                        LATE_ACCURACY_USEC, on_late, api);
        return r;
}

/* The late turn may be planned for the end of a pause that others have. Who has none gets it sooner, but not later with
 * each one that comes. */
static void hasten(struct api *api)
{
        uint64_t planned = 0;

        if (pause_left(api) == 0 && sd_event_source_get_time(api->reader_late, &planned) >= 0
                && planned > monotonic_now() + LATE_USEC)
                plan_turn(api, true);
}

int reader_turn_wait(struct reader_turn *turn)
{
        struct api *api = turn->request->api;
        bool first = !api->reader_turns;
        int r = turn->link ? 0 : prepare(api);

        if (r < 0 || turn->link)
                return r;
        turn->next = api->reader_turns;
        turn->link = &api->reader_turns;
        if (turn->next)
                turn->next->link = &turn->next;
        api->reader_turns = turn;
        (void)sd_event_source_set_enabled(api->reader_turn, SD_EVENT_ONESHOT);
        if (first)
                plan_turn(api, true);
        else
                hasten(api);
        return 0;
}

void reader_turn_leave(struct reader_turn *turn)
{
        if (!turn->link)
                return;
        *turn->link = turn->next;
        if (turn->next)
                turn->next->link = turn->link;
        turn->next = NULL;
        turn->link = NULL;
}

/* Let the request run. */
static void go_on(struct reader_turn *turn)
{
        hold_end(turn->request->hold);
}

static int wait_for_turn(struct request *request)
{
        struct waiting *waiting = calloc(1, sizeof(*waiting));
        int r = waiting ? hold_attach(&waiting->hold, &waiting_kind, request) : -ENOMEM;

        if (r < 0) {
                free(waiting);
                return r;
        }
        waiting->turn = (struct reader_turn){.request = request, .run = go_on};
        r = reader_turn_wait(&waiting->turn);
        if (r >= 0)
                hold_suspend(&waiting->hold);
        else
                request->hold = waiting_free(&waiting->hold);
        return r;
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
