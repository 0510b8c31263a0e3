/* SPDX-License-Identifier: MIT */
/* Reports to the service manager in one line how the devices are. */
#include "ublkd/tasks/service_line.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/host/service_summary.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

enum { PAUSE_USEC = 1000 * 1000 };

struct service_line {
        struct device_store *store;
        const struct host *host;
        sd_event_source *pause; /* armed: the line was sent a moment ago, or is about to be sent */
        bool changed;           /* since the line was made */
        char sent[SERVICE_SUMMARY_SIZE];
};

DEFINE_CLEANUP(struct service_line, service_line_free);

static size_t count_problems(const struct host *host)
{
        return host->problems.count + host->state.count + host->settings.count + host->workers.count
               + host->files.count;
}

/* Ignore an error: nothing depends on the line. */
static void send_line(struct service_line *line)
{
        char text[SERVICE_SUMMARY_SIZE];

        line->changed = false;
        service_summary(line->store, count_problems(line->host), text);
        if (strcmp(text, line->sent) == 0)
                return;
        strcpy(line->sent, text);
        (void)sd_notifyf(0, "STATUS=%s", text);
}

static int arm(struct service_line *line, uint64_t usec)
{
        int r = sd_event_source_set_time_relative(line->pause, usec);

        return r < 0 ? r : sd_event_source_set_enabled(line->pause, SD_EVENT_ONESHOT);
}

static int on_pause_over(sd_event_source *source _unused_, uint64_t now _unused_, void *userdata)
{
        struct service_line *line = userdata;

        if (!line->changed)
                return 0;
        send_line(line);
        (void)arm(line, PAUSE_USEC);
        return 0;
}

void service_line_changed(struct service_line *line)
{
        int enabled = SD_EVENT_OFF;

        if (!line || line->changed)
                return;
        line->changed = true;
        (void)sd_event_source_get_enabled(line->pause, &enabled);
        if (enabled == SD_EVENT_OFF)
                (void)arm(line, 0);
}

static void on_store_event(void *userdata, const struct store_event *event)
{
        if (event->kind != STORE_NOTED)
                service_line_changed(userdata);
}

int service_line_new(
        sd_event *event, struct device_store *store, const struct host *host, struct service_line **ret)
{
        _cleanup_(service_line_free_pointer) struct service_line *line = calloc(1, sizeof(*line));
        int r;

        if (!line)
                return -ENOMEM;
        line->host = host;
        r = sd_event_add_time_relative(event, &line->pause, CLOCK_MONOTONIC, 0, 0, on_pause_over, line);
        if (r >= 0)
                r = sd_event_source_set_priority(line->pause, SD_EVENT_PRIORITY_IDLE);
        if (r >= 0)
                r = device_store_subscribe(store, on_store_event, line);
        if (r < 0)
                return r;
        line->store = store;
        line->changed = true; /* the timer is armed */
        *ret = TAKE_PTR(line);
        return 0;
}

struct service_line *service_line_free(struct service_line *line)
{
        if (!line)
                return NULL;
        if (line->store)
                device_store_unsubscribe(line->store, on_store_event, line);
        sd_event_source_disable_unref(line->pause);
        free(line);
        return NULL;
}
