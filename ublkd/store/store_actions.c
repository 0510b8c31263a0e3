/* SPDX-License-Identifier: MIT */
/* The actions of devices: a list in the record of each, which is written whole, apart from the record. */
#include "ublkd/store/store_actions.h"
#include "ublkd/store/device_store_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* What a change works on: a copy of the list, which takes the place of the list once it is stored. */
struct change {
        struct store_entry *entry;
        struct device_actions *actions;
};

static void change_clear(struct change *change)
{
        device_actions_free(change->actions);
}

static int begin(struct device_store *store, const char *name, struct change *ret)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);

        if (!entry)
                return -ENOENT;
        *ret = (struct change){.entry = entry, .actions = device_actions_copy(entry->record.actions)};
        return ret->actions ? 0 : -ENOMEM;
}

/* As begin(), and the action that is under way, if that is its id. */
static int begin_with(struct device_store *store, const char *name, uint64_t id, struct change *ret,
        struct device_action **ret_action)
{
        int r = begin(store, name, ret);
        struct device_action *action = r < 0 ? NULL : device_actions_current(ret->actions);

        if (r >= 0 && (!action || action->id != id))
                r = -ENOENT;
        *ret_action = action;
        return r;
}

/* Make the list of an entry and the event of `draft` durable. Return 0, or -errno: nothing has changed. */
static int save(struct device_store *store, struct device_record *record, const char *text,
        const struct event_draft *draft, const struct device_event **ret)
{
        const struct device_backend *backend = store->backend;
        uint64_t revision = store->revision + 1;
        struct device_event *event;
        int r;

        assert(!store->subscribers.announcing);
        r = draft_make(store->events, record, draft, revision, &event);
        if (r < 0)
                return r;
        if (backend->save_actions)
                r = backend->save_actions(store->context, record->name, text, revision, event);
        r = device_store_note_change(store, r, revision, event);
        if (r >= 0)
                *ret = event;
        return r;
}

static int finish(struct device_store *store, struct change *change, enum store_event_kind kind,
        const struct event_draft *draft)
{
        const struct device_event *event;
        struct device_actions *old;
        _cleanup_free_ char *text = device_actions_to_text(change->actions);
        int r = text ? save(store, &change->entry->record, text, draft, &event) : -ENOMEM;

        if (r < 0)
                return r;
        old = change->entry->record.actions;
        change->entry->record.actions = change->actions;
        change->actions = old;
        device_store_announce(store, kind, change->entry, event);
        return 0;
}

/* The revision with which it is stored is the id: it is of no other action. */
int device_store_begin_action(struct device_store *store, const char *name, const char *verb,
        const char *arguments, uint64_t *ret_id)
{
        _cleanup_(change_clear) struct change change = {};
        uint64_t id = store->revision + 1;
        struct device_action *action;
        struct event_draft draft;
        char message[EVENT_MESSAGE_MAX];
        int r = begin(store, name, &change);

        if (r < 0)
                return r;
        if (device_actions_current(change.actions))
                return -EBUSY;
        action = device_action_new(id, verb, arguments, device_record_now());
        if (!action)
                return -ENOMEM;
        device_actions_add(change.actions, action);
        (void)snprintf(message, sizeof(message), "A client started the action %s.", verb);
        draft = draft_of(&change.entry->record, EVENT_NORMAL, REASON_ACTION_STARTED, message);
        draft.apart = true;
        r = finish(store, &change, STORE_INTENT, &draft);
        if (r >= 0)
                *ret_id = id;
        return r;
}

int device_store_cancel_action(struct device_store *store, const char *name, uint64_t id)
{
        _cleanup_(change_clear) struct change change = {};
        struct device_action *action;
        int r = begin(store, name, &change);

        if (r < 0)
                return r;
        action = device_actions_find(change.actions, id);
        if (!action)
                return -ENOENT;
        if (device_action_has_ended(action) || action->cancel_requested)
                return 0;
        action->cancel_requested = true;
        return finish(store, &change, STORE_INTENT, NULL);
}

int device_store_run_action(struct device_store *store, const char *name, uint64_t id)
{
        _cleanup_(change_clear) struct change change = {};
        struct device_action *action;
        int r = begin_with(store, name, id, &change, &action);

        if (r < 0)
                return r;
        action->state = DEVICE_ACTION_RUNNING;
        action->started_at = device_record_now();
        return finish(store, &change, STORE_NOTED, NULL);
}

int device_store_set_action_progress(
        struct device_store *store, const char *name, uint64_t id, uint64_t done, uint64_t total)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        struct device_action *action = entry ? device_actions_current(entry->record.actions) : NULL;

        if (!action || action->id != id)
                return -ENOENT;
        action->done = done;
        action->total = total;
        return 0;
}

int device_store_end_action(
        struct device_store *store, const char *name, uint64_t id, const struct action_end *end)
{
        _cleanup_(change_clear) struct change change = {};
        struct device_action *action;
        struct event_draft draft;
        int r = begin_with(store, name, id, &change, &action);

        if (r < 0)
                return r;
        action->state = end->state;
        action->reason = end->reason;
        action->ended_at = device_record_now();
        action->message = strdup(end->message);
        action->result = end->result ? strdup(end->result) : NULL;
        if (!action->message || (end->result && !action->result))
                return -ENOMEM;
        device_actions_trim(change.actions);
        draft = draft_of(
                &change.entry->record, end->alarms ? EVENT_WARNING : EVENT_NORMAL, end->reason, end->message);
        draft.apart = true;
        return finish(store, &change, STORE_NOTED, &draft);
}
