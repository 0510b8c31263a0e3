/* SPDX-License-Identifier: MIT */
/* Writes the events that wait in the store's log, and deletes the compacted ones from the database. */
#include "ublkd/store/event_writer.h"

#include "ublkd/base/cleanup.h"

enum {
        WRITE_USEC =
                1000 * 1000, /* for new events and repetitions alike: the count must be right after a crash */
        RETRY_USEC = 30 * 1000 * 1000,
};

struct event_writer {
        struct event_writer_config config;
        sd_event_source *timer; /* enabled while events wait */
        uint64_t due;           /* CLOCK_MONOTONIC microseconds, meaningful while the timer is enabled */
        bool failing;
};

DEFINE_CLEANUP(struct event_writer, event_writer_free);

static bool is_armed(const struct event_writer *writer)
{
        int enabled = SD_EVENT_OFF;

        return sd_event_source_get_enabled(writer->timer, &enabled) > 0 && enabled != SD_EVENT_OFF;
}

static int arm(struct event_writer *writer, uint64_t delay)
{
        uint64_t now;
        int r = sd_event_now(writer->config.event, CLOCK_MONOTONIC, &now);

        if (r < 0 || (is_armed(writer) && writer->due <= now + delay))
                return r;
        writer->due = now + delay;
        r = sd_event_source_set_time(writer->timer, writer->due);
        return r < 0 ? r : sd_event_source_set_enabled(writer->timer, SD_EVENT_ONESHOT);
}

static int write_events(struct event_writer *writer)
{
        int r = device_store_save_events(writer->config.store);
        bool fails = r < 0;

        if (fails != writer->failing) {
                writer->failing = fails;
                writer->config.changed(writer->config.userdata, r);
        }
        return r;
}

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct event_writer *writer = userdata;

        return write_events(writer) < 0 ? arm(writer, RETRY_USEC) : 0;
}

/* The timer stays enabled: it does nothing if all events are written by then. */
void event_writer_retry(struct event_writer *writer)
{
        if (writer->failing)
                (void)write_events(writer);
}

static void on_store_event(void *userdata, const struct store_event *change _unused_)
{
        struct event_writer *writer = userdata;
        const struct event_log *log = device_store_events(writer->config.store);
        size_t count = event_log_count(log);
        const struct device_event *event = count > 0 ? event_log_at(log, count - 1) : NULL;

        if (writer->failing)
                return;
        if (event && event->unsaved)
                (void)arm(writer, WRITE_USEC);
        /* An event that was written with its record does not wait here, but may have compacted others away. */
        if (event_log_has_dropped(log))
                (void)arm(writer, WRITE_USEC);
}

int event_writer_new(const struct event_writer_config *config, struct event_writer **ret)
{
        _cleanup_(event_writer_free_pointer) struct event_writer *writer = calloc(1, sizeof(*writer));
        int r;

        if (!writer)
                return -ENOMEM;
        writer->config = *config;
        r = sd_event_add_time(config->event, &writer->timer, CLOCK_MONOTONIC, 0, 0, on_timer, writer);
        if (r >= 0)
                r = sd_event_source_set_enabled(writer->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = device_store_subscribe(config->store, on_store_event, writer);
        if (r < 0)
                return r;
        on_store_event(writer, NULL); /* for events added while the store was loaded */
        *ret = TAKE_PTR(writer);
        return 0;
}

struct event_writer *event_writer_free(struct event_writer *writer)
{
        if (!writer)
                return NULL;
        device_store_unsubscribe(writer->config.store, on_store_event, writer);
        sd_event_source_disable_unref(writer->timer);
        free(writer);
        return NULL;
}
