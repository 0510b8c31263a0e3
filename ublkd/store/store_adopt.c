/* SPDX-License-Identifier: MIT */
/* Adopts records from the runtime directory, and marks records that are older than their copies there. */
#include "ublkd/store/device_store_internal.h"

#include "ublkd/store/device_record.h"

#include <assert.h>
#include <string.h>

/* Return the text of the spec with another name, or NULL: ENOMEM, or not a JSON object. The caller frees it. */
static char *rename_spec(const char *text, const char *name)
{
        cJSON *document = cJSON_Parse(text), *item = cJSON_CreateString(name);
        char *renamed = NULL;

        if (document && item && cJSON_ReplaceItemInObjectCaseSensitive(document, "name", item)) {
                item = NULL;
                renamed = cJSON_PrintUnformatted(document);
        }
        cJSON_Delete(item);
        cJSON_Delete(document);
        return renamed;
}

static int fill_entry(
        struct store_entry *entry, const struct device_record *from, const char *text, const char *name)
{
        struct device_record *record = &entry->record;
        bool renamed = strcmp(from->name, name) != 0;
        int r;

        *record = *from;
        record->spec = NULL;
        record->quarantine = NULL;
        record->source = NULL;
        record->stores = NULL;
        record->source_trouble = NULL;
        record->source_state = SOURCE_APPLIED;
        record->status = (struct device_status){.number = -1};
        record->stopped = false;
        record->age = RECORD_CURRENT;
        record->name = strdup(name);
        r = record_stores_copy(from->stores, &record->stores);
        if (r < 0)
                return r;
        if (from->source && !renamed) { /* the file does not describe the new name */
                record->source = strdup(from->source);
                if (!record->source)
                        return -ENOMEM;
        }
        entry->text = renamed ? rename_spec(text, name) : strdup(text);
        if (!record->name || !entry->text)
                return -ENOMEM;
        if (renamed)
                record->generation++;
        record->expired = false;
        r = device_record_explain_unseen(record);
        if (r >= 0)
                r = device_record_parse(record, entry->text);
        record->temporary = record->spec && record->spec->options.temporary;
        return r >= 0 && record->quarantine ? -EINVAL : r;
}

static struct store_entry *number_holder(
        const struct device_store *store, const struct device_record *adopted)
{
        const struct store_number *owner = store_entries_of_number(&store->entries, adopted->number);

        while (owner
                && (owner->entry->record.number != adopted->number
                        || strcmp(owner->entry->record.uid, adopted->uid) == 0))
                owner = store_entries_same_number(owner);
        return owner ? owner->entry : NULL;
}

/* Give the number of `adopted` to the device whose disk has it. The other device has no disk, or its disk has
 * another number; it loses the number. Return 0 or -errno. */
static int settle_number(struct device_store *store, struct device_record *adopted)
{
        struct store_entry *holder = adopted->number < 0 ? NULL : number_holder(store, adopted);
        struct device_record changed;

        if (!holder)
                return 0;
        if (device_record_disk_has_number(&holder->record)) {
                adopted->number = -1;
                return 0;
        }
        changed = holder->record;
        changed.number = -1;
        return device_store_update(store, holder, &changed, REASON_NUMBER_RELEASED,
                "The kernel number belongs to the disk of an adopted device; this device gets another one.");
}

/* Swap the records of two entries; the entry of the store stays in the indexes. */
static void exchange(struct device_store *store, struct store_entry *entry, struct store_entry *other)
{
        struct device_record record = entry->record;
        struct device_actions *actions = record.actions;
        char *text = entry->text;

        entry->record = other->record;
        entry->text = other->text;
        other->record = record;
        other->record.actions = entry->record.actions;
        entry->record.actions = actions; /* they stay with the device */
        other->text = text;
        store_entries_update(&store->entries, entry);
}

int device_store_adopt(struct device_store *store, const struct device_record *record, const char *text,
        const char *name, const struct device_record **ret)
{
        _cleanup_store_entry_ struct store_entry *entry = calloc(1, sizeof(*entry));
        struct store_entry *old = store_entries_find_uid(&store->entries, record->uid);
        const struct device_event *event;
        struct event_draft draft;
        int r = entry ? fill_entry(entry, record, text, old ? old->record.name : name) : -ENOMEM;

        if (r >= 0)
                r = settle_number(store, &entry->record);
        if (r < 0)
                return r;
        assert(old || !store_entries_find(&store->entries, name));
        draft = draft_of(&entry->record, EVENT_NORMAL, REASON_ADOPTED,
                "ublkd took the record from the runtime directory, and manages the device from now on.");
        draft.apart = true;
        r = device_store_save(store, &entry->record, entry->text, &draft, &event);
        if (r < 0)
                return r;
        if (old)
                exchange(store, old, entry);
        else
                store_entries_insert(&store->entries, old = TAKE_PTR(entry));
        *ret = &old->record;
        device_store_announce(store, STORE_ADOPTED, old, event);
        return 0;
}

int device_store_set_age(struct device_store *store, const char *name, enum record_age age)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        struct device_status status = {.phase = PHASE_FAILED};
        int r;

        if (!entry)
                return -ENOENT;
        entry->record.age = age;
        if (age == RECORD_CURRENT)
                return 0;
        status.number = entry->record.number;
        status.observed_generation = entry->record.generation;
        r = device_record_explain_age(&entry->record, &status);
        if (r >= 0)
                r = device_store_set_status(store, name, &status);
        device_status_clear(&status);
        return r;
}
