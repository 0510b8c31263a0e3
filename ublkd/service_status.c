/* SPDX-License-Identifier: MIT */
/* Tells the service manager in one line how the devices are. */
#include "ublkd/service_status.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/host/service_summary.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

enum { PAUSE_USEC = 1000 * 1000 };

struct service_status {
        struct device_store *store;
        const struct host *host;
        sd_event_source *pause; /* armed: the line was sent a moment ago, or is about to be sent */
        bool changed;           /* since the line was made */
        char sent[SERVICE_SUMMARY_SIZE];
};

DEFINE_CLEANUP(struct service_status, service_status_free);

/* Ignore an error: nothing depends on the line. */
static void send_line(struct service_status *status)
{
        char text[SERVICE_SUMMARY_SIZE];

        status->changed = false;
        service_summary(status->store, status->host->problems.count + status->host->state.count, text);
        if (strcmp(text, status->sent) == 0)
                return;
        strcpy(status->sent, text);
        (void)sd_notifyf(0, "STATUS=%s", text);
}

static int arm(struct service_status *status, uint64_t usec)
{
        int r = sd_event_source_set_time_relative(status->pause, usec);

        return r < 0 ? r : sd_event_source_set_enabled(status->pause, SD_EVENT_ONESHOT);
}

static int on_pause_over(sd_event_source *source _unused_, uint64_t now _unused_, void *userdata)
{
        struct service_status *status = userdata;

        if (!status->changed)
                return 0;
        send_line(status);
        (void)arm(status, PAUSE_USEC);
        return 0;
}

void service_status_changed(struct service_status *status)
{
        int enabled = SD_EVENT_OFF;

        if (!status || status->changed)
                return;
        status->changed = true;
        (void)sd_event_source_get_enabled(status->pause, &enabled);
        if (enabled == SD_EVENT_OFF)
                (void)arm(status, 0);
}

static void on_store_event(void *userdata, const struct store_event *event)
{
        if (event->kind != STORE_NOTED)
                service_status_changed(userdata);
}

int service_status_new(
        sd_event *event, struct device_store *store, const struct host *host, struct service_status **ret)
{
        _cleanup_(service_status_free_pointer) struct service_status *status = calloc(1, sizeof(*status));
        int r;

        if (!status)
                return -ENOMEM;
        status->host = host;
        r = sd_event_add_time_relative(event, &status->pause, CLOCK_MONOTONIC, 0, 0, on_pause_over, status);
        if (r >= 0)
                r = sd_event_source_set_priority(status->pause, SD_EVENT_PRIORITY_IDLE);
        if (r >= 0)
                r = device_store_subscribe(store, on_store_event, status);
        if (r < 0)
                return r;
        status->store = store;
        status->changed = true; /* the timer is armed */
        *ret = TAKE_PTR(status);
        return 0;
}

struct service_status *service_status_free(struct service_status *status)
{
        if (!status)
                return NULL;
        if (status->store)
                device_store_unsubscribe(status->store, on_store_event, status);
        sd_event_source_disable_unref(status->pause);
        free(status);
        return NULL;
}
