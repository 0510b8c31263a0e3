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
#include "ublkd/base/tree.h"

#include <string.h>

/* The last line of a device. */
struct line {
        char uid[UID_TEXT_SIZE];
        enum condition_reason reason;
        char *message; /* owned; NULL: there was no memory for it */
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

/* NULL on ENOMEM. */
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

static void forget(struct event_journal *journal, const char *uid)
{
        struct line *line = line_of(tree_remove(&journal->lines, uid));

        if (!line)
                return;
        free(line->message);
        free(line);
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
                forget(journal, line_of(journal->lines.first)->uid);
        free(journal);
        return NULL;
}
