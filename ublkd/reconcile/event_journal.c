/* SPDX-License-Identifier: MIT */
/* Logs the events of devices: one line for each decision, with the sentence of its event.
 *
 * Two kinds of events are not logged: a step of a decision, because the line of the decision has announced it; and a
 * repetition of the last line of the device, such as a try that fails for the same reason as the last one. */
#include "ublkd/reconcile/event_journal.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/log.h"
#include "ublkd/base/sentence.h"
#include "ublkd/base/tree.h"

#include <string.h>

/* The last line of a device. */
struct line {
        char uid[UID_TEXT_SIZE];
        enum condition_reason reason;
        char *message; /* owned; NULL on ENOMEM */
        struct tree_node node;
};

struct event_journal {
        struct device_store *store;
        struct tree lines; /* by uid */
};

static struct line *line_of(const struct tree_node *node)
{
        return TREE_OBJECT(node, struct line, node);
}

static int compare_uid(const void *key, const struct tree_node *node)
{
        return strcmp(key, line_of(node)->uid);
}

static struct line *find(const struct event_journal *journal, const char *uid)
{
        return line_of(tree_find(&journal->lines, uid));
}

/* Return NULL on ENOMEM. */
static struct line *insert(struct event_journal *journal, const char *uid)
{
        struct line *line = calloc(1, sizeof(*line));

        if (!line)
                return NULL;
        strncpy(line->uid, uid, UID_TEXT_SIZE - 1);
        tree_insert(&journal->lines, line->uid, &line->node);
        return line;
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

static void drop(struct event_journal *journal, const char *uid)
{
        struct line *line = line_of(tree_remove(&journal->lines, uid));

        if (!line)
                return;
        free(line->message);
        free(line);
}

/* Return whether the last line has the same status, in any words, or the same sentence. Requests of clients are always
 * logged. */
static bool is_recorded(
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
        bool of_disk = !change->record && change->kind != STORE_REMOVED; /* manager.c has logged it */

        if (change->event && !of_disk && !is_recorded(journal, change->kind, change->event)) {
                remember(journal, change->event);
                write_line(change->record, change->event);
        }
        if (change->kind == STORE_REMOVED)
                drop(journal, change->uid);
}

int event_journal_new(struct device_store *store, struct event_journal **ret)
{
        struct event_journal *journal = calloc(1, sizeof(*journal));
        int r;

        if (journal)
                journal->lines.compare = compare_uid;
        r = journal ? device_store_subscribe(store, on_store_event, journal) : -ENOMEM;

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
        while (journal->lines.first)
                drop(journal, line_of(journal->lines.first)->uid);
        free(journal);
        return NULL;
}
