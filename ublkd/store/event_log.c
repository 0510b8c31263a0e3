/* SPDX-License-Identifier: MIT */
/* The events that are kept: a sorted array that grows at its end. */
#include "ublkd/store/event_log.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/base/sentence.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

struct event_log {
        struct device_event *events[EVENTS_MAX + 1]; /* one more than is kept: taking it cannot fail */
        size_t count;
        uint64_t compacted, compacted_saved; /* here, and in the backend */
};

int event_log_new(struct event_log **ret)
{
        struct event_log *log = calloc(1, sizeof(*log));

        if (!log)
                return -ENOMEM;
        *ret = log;
        return 0;
}

struct event_log *event_log_free(struct event_log *log)
{
        if (!log)
                return NULL;
        for (size_t i = 0; i < log->count; i++)
                device_event_free(log->events[i]);
        free(log);
        return NULL;
}

static uint64_t usec_before(uint64_t now, uint64_t seconds)
{
        uint64_t usec = seconds * USEC_PER_SEC;

        return now > usec ? now - usec : 0;
}

/* Drops the oldest ones: beyond the number, and too old. */
static void compact(struct event_log *log, uint64_t now)
{
        uint64_t oldest = usec_before(now, EVENT_AGE_MAX_SECONDS);
        size_t dropped = log->count > EVENTS_MAX ? log->count - EVENTS_MAX : 0;

        while (dropped < log->count && log->events[dropped]->last_at < oldest)
                dropped++;
        if (dropped == 0)
                return;
        log->compacted = log->events[dropped - 1]->revision;
        for (size_t i = 0; i < dropped; i++)
                device_event_free(log->events[i]);
        log->count -= dropped;
        memmove(log->events, log->events + dropped, log->count * sizeof(log->events[0]));
}

size_t event_log_after(const struct event_log *log, uint64_t revision)
{
        size_t low = 0, high = log->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (log->events[middle]->revision > revision)
                        high = middle;
                else
                        low = middle + 1;
        }
        return low;
}

static void insert_at(struct event_log *log, size_t index, struct device_event *event)
{
        memmove(log->events + index + 1, log->events + index, (log->count - index) * sizeof(log->events[0]));
        log->events[index] = event;
        log->count++;
}

int event_log_load(void *userdata, const struct device_event *event)
{
        struct event_log *log = userdata;
        struct device_event *copy = device_event_copy(event);

        if (!copy)
                return -ENOMEM;
        copy->unsaved = false;
        insert_at(log, event_log_after(log, event->revision), copy);
        if (log->count > EVENTS_MAX)
                compact(log, 0);
        return 0;
}

void event_log_loaded(struct event_log *log, uint64_t compacted, uint64_t now)
{
        log->compacted = log->compacted > compacted ? log->compacted : compacted;
        log->compacted_saved = compacted;
        compact(log, now);
}

/* What becomes of a write that finds no room is up to onFull, which changes under the disk. */
static bool says_the_same(const struct device_event *one, const struct device_event *other)
{
        return one->reason != REASON_STORE_FULL || sentence_equal(one->message, other->message);
}

/* The one that `happened` repeats, or log->count. The newest are last, and so is a repetition most often. */
static size_t find_repeated(const struct event_log *log, const struct device_event *happened)
{
        uint64_t oldest = usec_before(happened->last_at, EVENT_REPEAT_SECONDS);

        if (happened->asked) /* each request is a change of its own, also for who looks later */
                return log->count;
        for (size_t i = log->count; i-- > 0 && log->events[i]->last_at >= oldest;) {
                const struct device_event *event = log->events[i];

                if (event->type == happened->type && event->reason == happened->reason
                        && says_the_same(event, happened) && strcmp(event->uid, happened->uid) == 0
                        && strcmp(event->device, happened->device)
                                   == 0) /* disks without a record have one uid */
                        return i;
        }
        return log->count;
}

int event_log_make(struct event_log *log, const struct device_event *happened, uint64_t revision,
        struct device_event **ret)
{
        size_t repeated = find_repeated(log, happened);
        struct device_event *event = device_event_copy(happened);

        if (!event)
                return -ENOMEM;
        event->revision = event->first_revision = revision;
        event->first_at = happened->last_at;
        event->count = 1;
        if (repeated < log->count) {
                event->first_revision = log->events[repeated]->first_revision;
                event->first_at = log->events[repeated]->first_at;
                event->count = log->events[repeated]->count + 1;
        }
        *ret = event;
        return 0;
}

/* What `event` continues goes, but nothing is lost with it: who has not seen it sees its continuation. */
static void remove_continued(struct event_log *log, const struct device_event *event)
{
        for (size_t i = log->count; event->count > 1 && i-- > 0;) {
                if (log->events[i]->first_revision != event->first_revision)
                        continue;
                device_event_free(log->events[i]);
                log->count--;
                memmove(log->events + i, log->events + i + 1, (log->count - i) * sizeof(log->events[0]));
                return;
        }
}

void event_log_take(struct event_log *log, struct device_event *event, bool saved)
{
        if (!event)
                return;
        event->unsaved = !saved;
        assert(log->count == 0 || log->events[log->count - 1]->revision < event->revision);
        remove_continued(log, event);
        log->events[log->count++] = event;
        compact(log, event->last_at);
}

size_t event_log_count(const struct event_log *log)
{
        return log->count;
}

const struct device_event *event_log_at(const struct event_log *log, size_t index)
{
        assert(index < log->count);
        return log->events[index];
}

uint64_t event_log_newest(const struct event_log *log)
{
        return log->count > 0 ? log->events[log->count - 1]->revision : 0;
}

uint64_t event_log_compacted(const struct event_log *log)
{
        return log->compacted;
}

size_t event_log_unsaved(const struct event_log *log, const struct device_event **ret, size_t size)
{
        size_t count = 0;

        for (size_t i = 0; i < log->count; i++) {
                if (!log->events[i]->unsaved)
                        continue;
                if (count < size)
                        ret[count] = log->events[i];
                count++;
        }
        return count;
}

bool event_log_has_dropped(const struct event_log *log)
{
        return log->compacted > log->compacted_saved;
}

void event_log_saved(struct event_log *log)
{
        log->compacted_saved = log->compacted;
        for (size_t i = 0; i < log->count; i++)
                log->events[i]->unsaved = false;
}
