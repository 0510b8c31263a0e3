/* SPDX-License-Identifier: MIT */
/* Wait for events of a device: GET /events, one event at a time.
 *
 * Each stream ends with its first event, because its reader cannot send another request. The next stream
 * resumes after that event, so none is lost. */
#include "ublkctl/client/device_news.h"

#include "ublkctl/client/event_list.h"
#include "ublkctl/client/sse.h"
#include "ublkctl/client/url.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { LOOK_AGAIN_MS = 200 };

struct device_news {
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

struct device_news *device_news_new(struct context *context, const char *name)
{
        struct device_news *news = calloc(1, sizeof(*news));

        if (!news)
                return NULL;
        *news = (struct device_news){.context = context, .name = name, .sse = sse_new(on_event, NULL)};
        return news->sse ? news : device_news_free(news);
}

struct device_news *device_news_free(struct device_news *news)
{
        if (news)
                sse_free(news->sse);
        free(news);
        return NULL;
}

static bool on_piece(void *userdata, const char *data, size_t size)
{
        const struct device_news *news = userdata;

        return sse_feed(news->sse, data, size);
}

static bool on_tick(void *userdata)
{
        const struct device_news *news = userdata;

        return !news->tick || news->tick(news->userdata);
}

static char *stream_path(const struct device_news *news)
{
        char text[32], *path = strdup("/events");

        snprintf(text, sizeof(text), "%" PRIu64, news->after);
        path = path ? url_add_parameter(path, "after", text) : NULL;
        return path ? url_add_parameter(path, "device", news->name) : NULL;
}

/* Stream until the first event. False: the daemon offers no stream (compacted, full, or without events). */
static bool stream(struct device_news *news, uint64_t usec)
{
        _cleanup_free_ char *path = stream_path(news);
        struct request request = {.method = "GET",
                .path = path,
                .patience = usec > 0 ? usec : 1, /* 0 would mean no limit */
                .tick = on_tick,
                .take = on_piece,
                .userdata = news};
        _cleanup_answer_ struct answer answer = {};

        sse_restart(news->sse);
        if (!path || client_ask(news->context->client, &request, true, &answer) != STATUS_OK
                || answer.status >= 300)
                return false;
        if (*sse_last_id(news->sse))
                news->after = strtoull(sse_last_id(news->sse), NULL, 10);
        return true;
}

static bool find_position(struct device_news *news)
{
        cJSON *kept = NULL;

        if (fetch_events(news->context, news->name, 0, 1, true, &kept, &news->after) != STATUS_OK)
                return false;
        cJSON_Delete(kept);
        return true;
}

void device_news_await(struct device_news *news, uint64_t usec, bool (*tick)(void *userdata), void *userdata)
{
        news->tick = tick;
        news->userdata = userdata;
        if (!news->positioned)
                news->positioned = find_position(news);
        else
                news->positioned = stream(news, usec);
        if (!news->positioned)
                (void)poll(NULL, 0, usec / 1000 < LOOK_AGAIN_MS ? (int)(usec / 1000) : LOOK_AGAIN_MS);
}
