/* SPDX-License-Identifier: MIT */
/* The records of all devices: kept in memory (store_entries), written through to a backend.
 *
 * Every change takes four steps: build the new record, let the backend save it, replace the old record (which
 * cannot fail), call the subscribers.
 *
 * A revision must not be used twice, also across a crash, but a status change must not cost a write. So a new
 * ublkd continues REVISION_BLOCK above the stored revision, and a status change writes only when it reaches
 * that limit. The stored revision is exact, so ublkd recognises an older copy of the database by it.
 *
 * Events share the revisions. The backend writes the event of a client's request together with the record;
 * other events wait in the log for device_store_save_events(). */
#include "ublkd/store/device_store_internal.h"

#include "ublkd/store/device_change.h"
#include "ublkd/store/device_record.h"
#include "ublkd/store/event_draft.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { REVISION_BLOCK = 1 << 16 };

void device_store_announce(struct device_store *store, enum store_event_kind kind,
        const struct store_entry *entry, const struct device_event *event)
{
        const struct store_event change = {
                .kind = kind,
                .name = entry->record.name,
                .uid = entry->record.uid,
                .revision = store->revision,
                .record = kind == STORE_REMOVED ? NULL : &entry->record,
                .event = event,
        };

        store_subscribers_announce(&store->subscribers, &change);
}

/* Return the last revision that may be used without a write. */
static uint64_t revision_limit(const struct device_store *store)
{
        return store->stamp.revision > 0 ? store->stamp.revision + REVISION_BLOCK : 0;
}

int device_store_note_write(struct device_store *store, int r)
{
        if (r >= 0 || r == -ENOLINK)
                store->gone = r < 0;
        return r;
}

int device_store_note_change(struct device_store *store, int r, uint64_t revision, struct device_event *event)
{
        r = device_store_note_write(store, r);
        if (r < 0) {
                device_event_free(event);
                return r;
        }
        store->revision = store->stamp.revision = revision;
        event_log_take(store->events, event, true);
        return 0;
}

int device_store_save(struct device_store *store, struct device_record *record, const char *text,
        const struct event_draft *draft, const struct device_event **ret)
{
        uint64_t revision = store->revision + 1;
        const struct device_record old = *record;
        struct device_event *event;
        int r;

        assert(!store->subscribers.announcing);
        r = draft_make(store->events, record, draft, revision, &event);
        if (r < 0)
                return r;
        record->revision = record->stored_revision = revision;
        r = device_store_note_change(
                store, store->backend->save(store->context, record, text, revision, event), revision, event);
        if (r < 0) {
                *record = old;
                return r;
        }
        *ret = event;
        return 0;
}

/* Use the next revision for a change that is not written at once. A full disk must not keep clients from
 * seeing it; at worst a revision is used twice after a crash. It does not make a record newer. */
static uint64_t next_revision(struct device_store *store)
{
        uint64_t revision = ++store->revision;

        if (revision > revision_limit(store) && store->backend->save_revision(store->context, revision) >= 0)
                store->stamp.revision = revision;
        return revision;
}

/* The same, with the event of `draft`. Return the event, or NULL: no event, or ENOMEM, which loses the event
 * but not the change. */
static const struct device_event *step_revision(
        struct device_store *store, struct store_entry *entry, const struct event_draft *draft)
{
        struct device_event *event;
        uint64_t revision = next_revision(store);

        if (draft_make(store->events, &entry->record, draft, revision, &event) < 0)
                return NULL;
        event_log_take(store->events, event, false);
        return event;
}

int device_store_change(struct device_store *store, struct store_entry *entry, struct device_record *changed,
        const struct event_draft *draft)
{
        const struct device_event *event;
        int r;

        r = device_store_save(store, changed, entry->text, draft, &event);
        if (r < 0)
                return r;
        entry->record = *changed;
        store_entries_update(&store->entries, entry);
        device_store_announce(store, STORE_INTENT, entry, event);
        return 0;
}

int device_store_update(struct device_store *store, struct store_entry *entry, struct device_record *changed,
        enum condition_reason reason, const char *message)
{
        struct event_draft draft = draft_of(&entry->record, EVENT_NORMAL, reason, message);

        draft.apart = true;
        return device_store_change(store, entry, changed, &draft);
}

static int load_record(void *userdata, const struct device_record *stored, const char *text)
{
        struct device_store *store = userdata;
        _cleanup_store_entry_ struct store_entry *entry = calloc(1, sizeof(*entry));
        int r;

        if (!entry)
                return -ENOMEM;
        entry->record = *stored;
        entry->record.spec = NULL;
        entry->record.quarantine = NULL;
        entry->record.source = NULL;
        entry->record.actions = NULL;
        entry->record.stores = NULL;
        entry->record.stored_revision = stored->revision;
        entry->record.status = (struct device_status){.number = -1};
        entry->record.name = strdup(stored->name);
        entry->text = strdup(text);
        if (stored->source)
                entry->record.source = strdup(stored->source);
        if (stored->actions)
                entry->record.actions = device_actions_copy(stored->actions);
        if (!entry->record.name || !entry->text || (stored->source && !entry->record.source)
                || (stored->actions && !entry->record.actions))
                return -ENOMEM;
        if (stored->expired) /* removed as if a client had asked for it: after its disk and its files */
                entry->record.deleting = true;
        r = record_stores_copy(stored->stores, &entry->record.stores);
        if (r >= 0)
                r = device_record_explain_unseen(&entry->record);
        if (r >= 0)
                r = device_record_parse(&entry->record, text);
        if (r >= 0 && record_stores_are_unreadable(entry->record.stores)) /* else any store would do */
                r = device_record_quarantine(&entry->record, "its backing stores cannot be read");
        if (r >= 0)
                r = device_record_sanitize(&entry->record);
        if (r < 0)
                return r;
        if (store_entries_find(&store->entries, entry->record.name))
                return -EBADMSG;
        store_entries_insert(&store->entries, TAKE_PTR(entry));
        return 0;
}

static void note_quarantined(struct device_store *store)
{
        DEVICE_STORE_FOREACH (record, store)
                if (record->quarantine)
                        (void)device_store_note(store, record->name, EVENT_WARNING, REASON_QUARANTINED, "%s",
                                record->status.message);
}

static void note_expired(struct device_store *store)
{
        DEVICE_STORE_FOREACH (record, store)
                if (record->expired)
                        (void)device_store_note(store, record->name, EVENT_NORMAL, REASON_BOOT_OVER,
                                "The device is temporary, and the boot that it belongs to is over; ublkd "
                                "removes it.%s",
                                device_spec_pool(record->spec) ? "" : " Its backing store stays as it is.");
}

int device_store_new(const struct device_backend *backend, void *context, struct device_store **ret)
{
        struct device_store *store = calloc(1, sizeof(*store));
        uint64_t compacted = 0;
        int r;

        if (!store) {
                backend->close(context);
                return -ENOMEM;
        }
        store_entries_init(&store->entries);
        store->backend = backend;
        store->context = context;
        r = event_log_new(&store->events);
        if (r >= 0)
                r = backend->load(context, load_record, store, &store->stamp);
        if (r >= 0)
                r = backend->load_events(context, event_log_load, store->events, &compacted);
        if (r < 0) {
                device_store_free(store);
                return r;
        }
        store->revision = revision_limit(store); /* an earlier ublkd may have used any revision up to it */
        event_log_loaded(store->events, compacted, device_record_now());
        if (event_log_newest(store->events) > store->revision) /* used while the disk was full */
                store->revision = event_log_newest(store->events);
        note_quarantined(store);
        note_expired(store);
        *ret = store;
        return 0;
}

struct device_store *device_store_free(struct device_store *store)
{
        if (!store)
                return NULL;
        if (store->events)
                (void)device_store_save_events(store); /* on failure the events of the last second are lost */
        store_entries_clear(&store->entries);
        free(store->subscribers.entries);
        event_log_free(store->events);
        store->backend->close(store->context);
        free(store);
        return NULL;
}

int device_store_check(const struct device_store *store)
{
        return store->backend->check ? store->backend->check(store->context) : 0;
}

bool device_store_is_gone(const struct device_store *store)
{
        return store->gone;
}

void device_store_set_gone(struct device_store *store, bool gone)
{
        store->gone = gone;
}

uint64_t device_store_revision(const struct device_store *store)
{
        return store->revision;
}

const struct store_stamp *device_store_stamp(const struct device_store *store)
{
        return &store->stamp;
}

int device_store_remove(struct device_store *store, const char *name)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        uint64_t revision = store->revision + 1;
        struct device_event *event = NULL;
        struct event_draft draft;
        int r;

        assert(!store->subscribers.announcing);
        if (!entry)
                return -ENOENT;
        draft = draft_of(
                &entry->record, EVENT_NORMAL, REASON_REMOVED, "ublkd removed the disk and the record.");
        r = draft_make(store->events, &entry->record, &draft, revision, &event);
        if (r >= 0)
                r = device_store_note_change(
                        store, store->backend->erase(store->context, name, revision, event), revision, event);
        if (r < 0)
                return r;
        store_entries_take(&store->entries, entry);
        device_store_announce(store, STORE_REMOVED, entry, event);
        store_entry_free(entry);
        return 0;
}

int device_store_set_status(struct device_store *store, const char *name, const struct device_status *status)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        const struct device_event *event;
        struct device_status copy;
        struct event_draft draft;
        int r;

        if (!entry)
                return -ENOENT;
        r = device_status_copy(status, &copy);
        if (r < 0)
                return r;
        copy.transition_at = device_record_transition_time(&entry->record.status, &copy);
        device_conditions_set_times(&entry->record.status.conditions, &copy.conditions, device_record_now());
        if (device_status_equal(&copy, &entry->record.status)) {
                device_status_clear(&copy);
                return 0;
        }
        draft = draft_of_status(&entry->record, &copy);
        event = step_revision(store, entry, &draft);
        device_status_clear(&entry->record.status);
        entry->record.status = copy;
        entry->record.revision = store->revision;
        device_store_announce(store, STORE_STATUS, entry, event);
        return 0;
}

static int note(
        struct device_store *store, const char *name, const struct event_draft *kind, const char *message)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        struct event_draft draft;

        if (!entry)
                return -ENOENT;
        draft = draft_of(&entry->record, kind->type, kind->reason, message);
        draft.apart = kind->apart;
        device_store_announce(store, STORE_NOTED, entry, step_revision(store, entry, &draft));
        return 0;
}

int device_store_note(struct device_store *store, const char *name, enum event_type type,
        enum condition_reason reason, const char *format, ...)
{
        char message[EVENT_MESSAGE_MAX];
        va_list arguments;

        va_start(arguments, format);
        (void)vsnprintf(message, sizeof(message), format, arguments);
        va_end(arguments);
        return note(store, name, &(const struct event_draft){.type = type, .reason = reason}, message);
}

int device_store_note_apart(struct device_store *store, const char *name, enum event_type type,
        enum condition_reason reason, const char *message)
{
        return note(store, name, &(const struct event_draft){.type = type, .reason = reason, .apart = true},
                message);
}

void device_store_note_disk(struct device_store *store, int number, enum event_type type,
        enum condition_reason reason, const char *message)
{
        char name[32];
        const struct device_record no_device = {.name = name, .uid = UID_OF_NO_DEVICE};
        const struct event_draft draft = {.type = type, .reason = reason, .message = message};
        struct device_event *event = NULL;

        snprintf(name, sizeof(name), "/dev/ublkb%d", number);
        if (draft_make(store->events, &no_device, &draft, next_revision(store), &event) >= 0)
                event_log_take(store->events, event, false);
        store_subscribers_announce(&store->subscribers, &(const struct store_event){
                                                                .kind = STORE_NOTED,
                                                                .name = name,
                                                                .uid = no_device.uid,
                                                                .revision = store->revision,
                                                                .event = event,
                                                        });
}

const struct event_log *device_store_events(const struct device_store *store)
{
        return store->events;
}

int device_store_save_events(struct device_store *store)
{
        const struct device_event *unsaved[EVENTS_MAX];
        size_t count = event_log_unsaved(store->events, unsaved, ARRAY_SIZE(unsaved));
        int r = 0;

        if (count > 0 || event_log_has_dropped(store->events))
                r = device_store_note_write(
                        store, store->backend->save_events(store->context, unsaved, count,
                                       event_log_compacted(store->events), event_log_floors(store->events)));
        if (r >= 0)
                event_log_saved(store->events);
        return r;
}

int device_store_subscribe(struct device_store *store, store_subscriber callback, void *userdata)
{
        return store_subscribers_add(&store->subscribers, callback, userdata);
}

void device_store_unsubscribe(struct device_store *store, store_subscriber callback, void *userdata)
{
        store_subscribers_remove(&store->subscribers, callback, userdata);
}
