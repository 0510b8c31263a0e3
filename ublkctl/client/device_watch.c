/* SPDX-License-Identifier: MIT */
/* Wait for events of a device: GET /events, one event at a time.
 *
 * Each stream ends with its first event, because its reader cannot send another request. The next stream
 * resumes after that event, so none is lost. */
#include "ublkctl/client/device_watch.h"

#include "ublkctl/client/event_list.h"
#include "ublkctl/client/sse.h"
#include "ublkctl/client/url.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { LOOK_AGAIN_MS = 200 };

struct device_watch {
        struct context *context;
        const char *name;
        struct sse *sse;
        uint64_t after; /* position in the stream */
        bool positioned;
        bool (*tick)(void *userdata);
        void *userdata;
};

static bool on_event(void *userdata _unused_, const char *data _unused_)
{
        return false;
}

struct device_watch *device_watch_new(struct context *context, const char *name)
{
        struct device_watch *watch = calloc(1, sizeof(*watch));

        if (!watch)
                return NULL;
        *watch = (struct device_watch){.context = context, .name = name, .sse = sse_new(on_event, NULL)};
        return watch->sse ? watch : device_watch_free(watch);
}

struct device_watch *device_watch_free(struct device_watch *watch)
{
        if (watch)
                sse_free(watch->sse);
        free(watch);
        return NULL;
}

static bool on_piece(void *userdata, const char *data, size_t size)
{
        const struct device_watch *watch = userdata;

        return sse_feed(watch->sse, data, size);
}

static bool on_tick(void *userdata)
{
        const struct device_watch *watch = userdata;

        return !watch->tick || watch->tick(watch->userdata);
}

static char *stream_path(const struct device_watch *watch)
{
        char text[32], *path = strdup("/events");

        snprintf(text, sizeof(text), "%" PRIu64, watch->after);
        path = path ? url_add_parameter(path, "after", text) : NULL;
        return path ? url_add_parameter(path, "device", watch->name) : NULL;
}

/* Stream until the first event. False: the daemon offers no stream (compacted, full, or without events). */
static bool stream(struct device_watch *watch, uint64_t usec)
{
        _cleanup_free_ char *path = stream_path(watch);
        struct request request = {.method = "GET",
                .path = path,
                .patience = usec > 0 ? usec : 1, /* 0 would mean no limit */
                .tick = on_tick,
                .take = on_piece,
                .userdata = watch};
        _cleanup_answer_ struct answer answer = {};

        sse_restart(watch->sse);
        if (!path || client_ask(watch->context->client, &request, true, &answer) != STATUS_OK
                || answer.status >= 300)
                return false;
        if (*sse_last_id(watch->sse))
                watch->after = strtoull(sse_last_id(watch->sse), NULL, 10);
        return true;
}

static bool find_position(struct device_watch *watch)
{
        cJSON *kept = NULL;

        if (fetch_events(watch->context, watch->name, 0, 1, true, &kept, &watch->after) != STATUS_OK)
                return false;
        cJSON_Delete(kept);
        return true;
}

void device_watch_await(
        struct device_watch *watch, uint64_t usec, bool (*tick)(void *userdata), void *userdata)
{
        watch->tick = tick;
        watch->userdata = userdata;
        if (!watch->positioned)
                watch->positioned = find_position(watch);
        else
                watch->positioned = stream(watch, usec);
        if (!watch->positioned)
                (void)poll(NULL, 0, usec / 1000 < LOOK_AGAIN_MS ? (int)(usec / 1000) : LOOK_AGAIN_MS);
}
