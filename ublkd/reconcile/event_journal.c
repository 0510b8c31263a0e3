/* SPDX-License-Identifier: MIT */
/* The log of what happens to devices: one line for each decision, which is the sentence of its event.
 *
 * Two kinds of events are no lines: the steps by which a decision is carried out, as the line before has told
 * what is done next; and what the last line of the device has told already, as a try that fails for the same
 * reason as the one before is no news. */
#include "ublkd/reconcile/event_journal.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/log.h"
#include "ublkd/base/sentence.h"

#include <string.h>

/* The last line of a device. */
struct line {
        char uid[UID_TEXT_SIZE];
        enum condition_reason reason;
        char *message; /* owned; NULL: there was no memory for it */
};

struct event_journal {
        struct device_store *store;
        struct line *lines; /* by uid */
        size_t count;
};

/* The place of `uid`, or where it would be inserted. */
static size_t find_place(const struct event_journal *journal, const char *uid)
{
        size_t low = 0, high = journal->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(journal->lines[middle].uid, uid) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static struct line *find(const struct event_journal *journal, const char *uid)
{
        size_t place = find_place(journal, uid);

        return place < journal->count && strcmp(journal->lines[place].uid, uid) == 0 ? &journal->lines[place]
                                                                                     : NULL;
}

/* NULL on ENOMEM. */
static struct line *insert(struct event_journal *journal, const char *uid)
{
        size_t place = find_place(journal, uid);
        struct line *lines = reallocarray(journal->lines, journal->count + 1, sizeof(*lines));

        if (!lines)
                return NULL;
        journal->lines = lines;
        memmove(lines + place + 1, lines + place, (journal->count - place) * sizeof(*lines));
        journal->count++;
        lines[place] = (struct line){};
        strncpy(lines[place].uid, uid, UID_TEXT_SIZE - 1);
        return &lines[place];
}

/* On ENOMEM a line may come twice. */
static void remember(struct event_journal *journal, const struct device_event *event)
{
        struct line *line = find(journal, event->uid);

        line = line ? line : insert(journal, event->uid);
        if (!line)
                return;
        free(line->message);
        line->reason = event->reason;
        line->message = strdup(event->message);
}

static void forget(struct event_journal *journal, const char *uid)
{
        struct line *line = find(journal, uid);

        if (!line)
                return;
        free(line->message);
        journal->count--;
        memmove(line, line + 1, (size_t)(journal->lines + journal->count - line) * sizeof(*line));
}

/* Whether the last line has told a status, in this or in other words, or anything else in the same words.
 * What a client asked for is always worth a line. */
static bool is_said(
        const struct event_journal *journal, enum store_event_kind kind, const struct device_event *event)
{
        const struct line *last = find(journal, event->uid);

        switch (kind) {
        case STORE_STATUS:
                if (reason_info(event->reason)->step)
                        return true;
                return last
                       && (last->reason == event->reason
                               || (last->reason == REASON_RECOVERED && event->reason == REASON_LIVE));
        case STORE_NOTED:
                return last && last->reason == event->reason && sentence_equal(last->message, event->message);
        default:
                return false;
        }
}

static void write_line(const struct device_record *record, const struct device_event *event)
{
        log_record(event->type == EVENT_WARNING ? LOG_WARNING : LOG_INFO,
                &(const struct log_fields){
                        .device = event->device,
                        .worker = record ? record->status.worker.pid : 0,
                        .reason = reason_to_string(event->reason),
                },
                "%s", event->message);
}

static void on_store_event(void *userdata, const struct store_event *change)
{
        struct event_journal *journal = userdata;
        bool of_disk = !change->record && change->kind != STORE_REMOVED; /* who found it has logged that */

        if (change->event && !of_disk && !is_said(journal, change->kind, change->event)) {
                remember(journal, change->event);
                write_line(change->record, change->event);
        }
        if (change->kind == STORE_REMOVED)
                forget(journal, change->uid);
}

int event_journal_new(struct device_store *store, struct event_journal **ret)
{
        struct event_journal *journal = calloc(1, sizeof(*journal));
        int r = journal ? device_store_subscribe(store, on_store_event, journal) : -ENOMEM;

        if (r < 0) {
                free(journal);
                return r;
        }
        journal->store = store;
        *ret = journal;
        return 0;
}

struct event_journal *event_journal_free(struct event_journal *journal)
{
        if (!journal)
                return NULL;
        device_store_unsubscribe(journal->store, on_store_event, journal);
        for (size_t i = 0; i < journal->count; i++)
                free(journal->lines[i].message);
        free(journal->lines);
        free(journal);
        return NULL;
}
