/* SPDX-License-Identifier: MIT */
/* Stream GET /events as Server-Sent Events. */
#include "api/held/watch.h"

#include "api/held/event_filter.h"
#include "api/held/reader_turns.h"
#include "api/http/hold.h"
#include "api/http/readers_rest.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "api/http/view.h"

#include "ublkd/base/clock.h"
#include "ublkd/base/utf8.h"
#include "ublkd/values/json_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
        GATHER_USEC = 20 * 1000, /* events within this time resume the watches once */
        KEEP_ALIVE_USEC = 15 * 1000 * 1000,
        RETRY_MSEC = 2000, /* when a disconnected client connects again */
        /* Of the events in one turn of a client that may not change devices: */
        LOOKED_AT_MAX = 256,
        LABELS_MAX = 32 * 1024, /* bytes of their labels, which a filter parses, and one more event */
        BLOCK_MAX = 8 * 1024,   /* bytes of text, and one more event */
};

struct watch {
        struct hold hold; /* first member */
        bool takes_turns; /* the client may not change devices */
        struct reader_turn turn;
        uint64_t seen;   /* events up to this revision are written, or do not match */
        char *text;      /* the text being written; NULL: none. Owned */
        size_t written;  /* bytes of `text` */
        bool keep_alive; /* the next text is a keep-alive */
        bool ended;
};

static struct watch *watch_of(const struct hold *hold)
{
        return (struct watch *)hold;
}

static struct hold *watch_free(struct hold *hold)
{
        struct watch *watch = watch_of(hold);

        if (!watch)
                return NULL;
        reader_turn_leave(&watch->turn);
        hold_release(hold);
        free(watch->text);
        free(watch);
        return NULL;
}

static void watch_left(struct hold *hold)
{
        reader_turn_leave(&watch_of(hold)->turn);
        watch_of(hold)->ended = true;
        hold_resume(hold);
}

/* The reply has begun, so it ends; the request is not abandoned. */
static const struct hold_kind watch_kind = {.left = watch_left, .free = watch_free};

static struct watch *first_watch(const struct api *api)
{
        return watch_of(hold_first(api, &watch_kind));
}

static struct watch *next_watch(const struct watch *watch)
{
        return watch_of(hold_next(&watch->hold));
}

static const struct device_store *store_of(const struct watch *watch)
{
        return watch->hold.request->api->config.store;
}

static const struct event_log *log_of(const struct watch *watch)
{
        return device_store_events(store_of(watch));
}

/* How much of the log one call may look at. */
struct bound {
        size_t events, labels; /* labels: bytes */
};

static const struct bound no_bound = {SIZE_MAX, SIZE_MAX};

static bool is_used_up(const struct bound *bound)
{
        return bound->events == 0 || bound->labels == 0;
}

static size_t less(size_t left, size_t used)
{
        return left > used ? left - used : 0;
}

static void use(struct bound *bound, const struct device_event *event)
{
        bound->events = less(bound->events, 1);
        bound->labels = less(bound->labels, event->labels ? strlen(event->labels) : 0);
}

static bool matches(const struct watch *watch, const struct device_event *event)
{
        const struct request *request = watch->hold.request;

        return view_has_event(request, event) && event_filter_matches(&request->query, event);
}

/* Return the next event that matches; NULL: there is none, or the bound is used up before one was found. */
static const struct device_event *next_event(struct watch *watch, struct bound *bound)
{
        const struct event_log *log = log_of(watch);

        for (size_t i = event_log_after(log, watch->seen); i < event_log_count(log); i++) {
                const struct device_event *event = event_log_at(log, i);

                if (is_used_up(bound))
                        return NULL;
                use(bound, event);
                if (matches(watch, event))
                        return event;
                watch->seen = event->revision;
        }
        watch->seen = device_store_revision(store_of(watch));
        return NULL;
}

/* Return whether there are events to look at. */
static bool has_more(const struct watch *watch)
{
        const struct event_log *log = log_of(watch);

        return event_log_after(log, watch->seen) < event_log_count(log);
}

static int format_event(const struct device_event *event, enum reader reader, char **ret)
{
        cJSON *object = device_event_to_json(event, reader);
        char *json = object ? json_print(object) : NULL; /* JSON without line breaks */
        int n = -1;

        cJSON_Delete(object);
        if (json) {
                utf8_repair(json);
                n = asprintf(ret, "id: %" PRIu64 "\ndata: %s\n\n", event->revision, json);
        }
        free(json);
        return n < 0 ? -ENOMEM : 0;
}

/* Print a comment that keeps the connection alive, with the position to resume from. Events that do not match
 * move the position too. */
static int format_keep_alive(const struct watch *watch, char **ret)
{
        return asprintf(ret, "id: %" PRIu64 "\n: keep-alive\n\n", watch->seen) < 0 ? -ENOMEM : 0;
}

static bool has_fallen_behind(const struct watch *watch)
{
        return watch->seen < view_compacted(watch->hold.request);
}

/* Put the next text into `ret`. 1; 0: none; -errno: end the stream. */
static int prepare_text(struct watch *watch, struct bound *bound, char **ret)
{
        const struct device_event *event;
        int r;

        if (watch->ended || has_fallen_behind(watch))
                return -EPIPE;
        event = next_event(watch, bound);
        if (!event && (!watch->keep_alive || has_more(watch)))
                return 0;
        r = event ? format_event(event, view_reader(watch->hold.request), ret)
                  : format_keep_alive(watch, ret);
        if (r < 0)
                return r;
        if (event)
                watch->seen = event->revision;
        watch->keep_alive = false;
        return 1;
}

static size_t write_text(struct watch *watch, char *buffer, size_t size)
{
        size_t left = strlen(watch->text + watch->written), n = left < size ? left : size;

        memcpy(buffer, watch->text + watch->written, n);
        watch->written += n;
        if (n == left) {
                free(watch->text);
                watch->text = NULL;
        }
        return n;
}

/* Write what there is, and make more of it at once. 0; -errno: end the stream. */
static int write_all(struct watch *watch, char *buffer, size_t size, size_t *used)
{
        struct bound bound = no_bound;
        int r = 1;

        while (*used < size && r > 0) {
                if (!watch->text) {
                        r = prepare_text(watch, &bound, &watch->text);
                        watch->written = 0;
                }
                if (r > 0)
                        *used += write_text(watch, buffer + *used, size - *used);
        }
        return r;
}

/* Write what there is, and let its turn make more. 0; -errno: end the stream. */
static int write_and_wait(struct watch *watch, char *buffer, size_t size, size_t *used)
{
        if (watch->text)
                *used = write_text(watch, buffer, size);
        if (watch->ended && *used == 0)
                return -EPIPE;
        return !watch->text && (has_more(watch) || watch->keep_alive) ? reader_turn_wait(&watch->turn) : 0;
}

/* Called by the HTTP library when the socket has room. */
static ssize_t on_room(void *userdata, uint64_t position _unused_, char *buffer, size_t size)
{
        struct watch *watch = userdata;
        size_t used = 0;
        int r = watch->takes_turns ? write_and_wait(watch, buffer, size, &used)
                                   : write_all(watch, buffer, size, &used);

        if (used > 0)
                return (ssize_t)used;
        if (r < 0)
                return MHD_CONTENT_READER_END_OF_STREAM;
        hold_suspend(&watch->hold);
        return 0;
}

/* Put the text of some events into watch->text. 0; -errno: end the stream. */
static int prepare_block(struct watch *watch)
{
        struct bound bound = {LOOKED_AT_MAX, LABELS_MAX};
        _cleanup_free_ char *block = NULL;
        size_t size = 0;
        int r = 1;

        while (r > 0 && size < BLOCK_MAX) {
                _cleanup_free_ char *text = NULL;
                char *longer;

                r = prepare_text(watch, &bound, &text);
                if (r <= 0)
                        break;
                longer = realloc(block, size + strlen(text) + 1);
                if (!longer)
                        return -ENOMEM;
                block = longer;
                strcpy(block + size, text);
                size += strlen(text);
        }
        watch->text = TAKE_PTR(block);
        watch->written = 0;
        return r < 0 && !watch->text ? r : 0; /* else it ends once that is written */
}

static void on_turn(struct reader_turn *turn)
{
        struct watch *watch = watch_of(turn->request->hold);
        struct api *api = turn->request->api;
        struct own_time began = readers_rest_begin(&api->readers_rest);

        if (!watch->text && prepare_block(watch) < 0)
                watch->ended = true;
        if (!watch->text && !watch->ended && has_more(watch) && reader_turn_wait(turn) < 0)
                watch->ended = true;
        readers_rest_add(&api->readers_rest, readers_rest_pause(&api->readers_rest, began), monotonic_now());
        if (watch->text || watch->ended)
                hold_resume(&watch->hold);
}

/* End the watch of a client that does not read: the log has dropped events that it has not read, so it cannot
 * catch up. */
static void cut_off(struct watch *watch)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(watch->hold.request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        watch->ended = true;
        if (info)
                (void)shutdown(info->connect_fd, SHUT_RDWR);
}

/* Let a stream go on that waits for events. */
static void go_on(struct watch *watch)
{
        if (!watch->takes_turns)
                hold_resume(&watch->hold);
        else if (watch->hold.request->suspended && reader_turn_wait(&watch->turn) < 0)
                cut_off(watch);
}

static int on_gathered(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct api *api = userdata;

        for (struct watch *watch = first_watch(api); watch; watch = next_watch(watch)) {
                bool suspended = watch->hold.request->suspended;

                if (!suspended && has_fallen_behind(watch))
                        cut_off(watch);
                else if (suspended && has_more(watch))
                        go_on(watch);
        }
        return 0;
}

static int on_keep_alive(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct api *api = userdata;
        int r;

        for (struct watch *watch = first_watch(api); watch; watch = next_watch(watch)) {
                watch->keep_alive = true;
                go_on(watch);
        }
        if (!first_watch(api))
                return 0;
        r = sd_event_source_set_time_relative(source, KEEP_ALIVE_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int arm(struct api *api, sd_event_source **source, uint64_t delay, sd_event_time_handler_t handler)
{
        int enabled = SD_EVENT_OFF, r;

        if (!*source)
                return sd_event_add_time_relative(
                        api->event, source, CLOCK_MONOTONIC, delay, 1000, handler, api);
        r = sd_event_source_get_enabled(*source, &enabled);
        if (r < 0 || enabled != SD_EVENT_OFF)
                return r < 0 ? r : 0;
        r = sd_event_source_set_time_relative(*source, delay);
        return r < 0 ? r : sd_event_source_set_enabled(*source, SD_EVENT_ONESHOT);
}

void watch_on_store_event(void *userdata, const struct store_event *event _unused_)
{
        struct api *api = userdata;

        if (first_watch(api))
                (void)arm(api, &api->gather, GATHER_USEC,
                        on_gathered); /* on failure the keep-alive wakes them */
}

static int watch_start(struct request *request, uint64_t revision)
{
        struct watch *watch = calloc(1, sizeof(*watch));
        int r = 0;

        if (!watch)
                return -ENOMEM;
        watch->seen = revision;
        watch->takes_turns = !connection_is_privileged(request->client);
        watch->turn = (struct reader_turn){.request = request, .run = on_turn};
        /* Send the position first: a client that is disconnected before the first event can resume too. */
        if (asprintf(&watch->text, "retry: %d\nid: %" PRIu64 "\n\n", RETRY_MSEC, revision) < 0) {
                watch->text = NULL;
                r = -ENOMEM;
        }
        if (r >= 0)
                r = arm(request->api, &request->api->keep_alive, KEEP_ALIVE_USEC, on_keep_alive);
        if (r >= 0)
                r = hold_attach(&watch->hold, &watch_kind, request);
        if (r < 0)
                watch_free(&watch->hold);
        else
                reply_stream(request, "text/event-stream", on_room, watch);
        return r;
}

static size_t count_of(const struct api *api, uint32_t account)
{
        size_t count = 0;

        for (const struct watch *watch = first_watch(api); watch; watch = next_watch(watch))
                count += !watch->hold.request->peer.tcp && watch->hold.request->peer.account == account;
        return count;
}

static bool has_room(const struct request *request)
{
        const struct peer *peer = &request->peer;
        bool may_change = peer_may_change(peer);
        size_t kept = !peer->tcp && may_change ? 0 : WATCHES_KEPT;

        return watch_count(request->api) < WATCHES_MAX - kept
               && (may_change || count_of(request->api, peer->account) < WATCHES_OF_A_USER);
}

void watch_begin(struct request *request, uint64_t revision)
{
        int r;

        if (!has_room(request)) {
                reply_problem(request, PROBLEM_TOO_MANY_WATCHES,
                        "Too many clients watch events (limit: %d, and %d of a user who may not change "
                        "devices); end one, or try again later.",
                        WATCHES_MAX, WATCHES_OF_A_USER);
                return;
        }
        r = watch_start(request, revision);
        if (r < 0)
                reply_error(request, r, "Cannot watch the events");
}

void watch_stop(struct api *api)
{
        api->gather = sd_event_source_disable_unref(api->gather);
        api->keep_alive = sd_event_source_disable_unref(api->keep_alive);
}

size_t watch_count(const struct api *api)
{
        return hold_count(api, &watch_kind);
}
