/* SPDX-License-Identifier: MIT */
/* Stream GET /events as Server-Sent Events. */
#include "api/held/watch.h"

#include "api/held/event_filter.h"
#include "api/http/hold.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "api/http/view.h"

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
};

struct watch {
        struct hold hold; /* first member */
        uint64_t seen;    /* events up to this revision are written, or do not match */
        char *text;       /* the text being written; NULL: none. Owned */
        size_t written;   /* bytes of `text` */
        bool keep_alive;  /* the next text is a keep-alive */
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
        hold_release(hold);
        free(watch->text);
        free(watch);
        return NULL;
}

static void watch_left(struct hold *hold)
{
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

static const struct device_event *next_event(struct watch *watch)
{
        const struct request *request = watch->hold.request;
        const struct event_log *log = log_of(watch);

        for (size_t i = event_log_after(log, watch->seen); i < event_log_count(log); i++) {
                const struct device_event *event = event_log_at(log, i);

                if (view_has_event(request, event) && event_filter_matches(&request->query, event))
                        return event;
                watch->seen = event->revision;
        }
        watch->seen = device_store_revision(store_of(watch));
        return NULL;
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

/* Put the next text to write into watch->text. 1; 0: none; -errno: end the stream. */
static int prepare_text(struct watch *watch)
{
        const struct device_event *event;
        int r;

        if (watch->ended || has_fallen_behind(watch))
                return -EPIPE;
        event = next_event(watch);
        if (!event && !watch->keep_alive)
                return 0;
        r = event ? format_event(event, view_reader(watch->hold.request), &watch->text)
                  : format_keep_alive(watch, &watch->text);
        if (r < 0) {
                watch->text = NULL;
                return r;
        }
        if (event)
                watch->seen = event->revision;
        watch->keep_alive = false;
        watch->written = 0;
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

/* Called by the HTTP library when the socket has room. */
static ssize_t on_room(void *userdata, uint64_t position _unused_, char *buffer, size_t size)
{
        struct watch *watch = userdata;
        size_t used = 0;
        int r = 1;

        while (used < size && r > 0) {
                if (!watch->text)
                        r = prepare_text(watch);
                if (watch->text)
                        used += write_text(watch, buffer + used, size - used);
        }
        if (used > 0)
                return (ssize_t)used;
        if (r < 0)
                return MHD_CONTENT_READER_END_OF_STREAM;
        hold_suspend(&watch->hold);
        return 0;
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

static int on_gathered(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct api *api = userdata;

        for (struct watch *watch = first_watch(api); watch; watch = next_watch(watch)) {
                bool suspended = watch->hold.request->suspended;

                if (!suspended && has_fallen_behind(watch))
                        cut_off(watch);
                else if (suspended && next_event(watch))
                        hold_resume(&watch->hold);
        }
        return 0;
}

static int on_keep_alive(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct api *api = userdata;
        int r;

        for (struct watch *watch = first_watch(api); watch; watch = next_watch(watch)) {
                watch->keep_alive = true;
                hold_resume(&watch->hold);
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
