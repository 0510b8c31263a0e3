/* SPDX-License-Identifier: MIT */
/* PUT of a spec: creates a record, replaces its spec, or leaves the spec and changes who owns it. */
#include "ublkd/store/device_store_internal.h"

#include "ublkd/store/device_change.h"
#include "ublkd/store/device_record.h"
#include "ublkd/store/event_draft.h"
#include "ublkd/store/put_check.h"
#include "ublkd/store/store_carry.h"
#include "ublkd/store/store_numbers.h"

#include "ublkd/values/json_print.h"

#include <stdio.h>
#include <string.h>

/* Copy `source` (NULL is fine). Return 0 or -ENOMEM. */
static int copy_source(const char *source, char **ret)
{
        *ret = source ? strdup(source) : NULL;
        return source && !*ret ? -ENOMEM : 0;
}

/* Give the record of `changed`, which is stored, its source (taken over) instead of that of `record`. */
static void take_source(struct device_record *record, struct device_record *changed, char *source)
{
        free(record->source);
        free(record->source_trouble);
        changed->source = source;
        changed->source_trouble = NULL;
        changed->source_state = SOURCE_APPLIED;
}

static int create_entry(struct device_store *store, struct device_spec *spec, char *text,
        const struct put_condition *condition, const struct device_record **ret)
{
        _cleanup_store_entry_ struct store_entry *entry = calloc(1, sizeof(*entry));
        const struct device_event *event;
        struct event_draft draft;
        int r;

        if (!entry)
                return -ENOMEM;
        r = device_record_new(spec, &entry->record);
        if (r < 0)
                return r;
        entry->record.number = (int)spec->options.id;
        entry->record.temporary = spec->options.temporary;
        if (condition->tenant)
                snprintf(entry->record.tenant, sizeof(entry->record.tenant), "%s", condition->tenant);
        r = copy_source(condition->source, &entry->record.source);
        if (r < 0)
                return r;
        draft = draft_of_spec(NULL, spec, true, condition->source);
        r = device_store_save(store, &entry->record, text, &draft, &event);
        if (r < 0)
                return r;
        entry->record.spec = spec;
        entry->text = text;
        *ret = &entry->record;
        store_entries_insert(&store->entries, entry);
        device_store_announce(store, STORE_SPEC, TAKE_PTR(entry), event);
        return 0;
}

/* Set in `changed`, a copy of the record, what follows from its next spec. */
static void follow_spec(
        const struct device_record *record, const struct device_spec *spec, struct device_record *changed)
{
        const struct disk_now disk = device_record_disk(record);

        changed->generation++;
        changed->temporary = spec->options.temporary;
        if (!record->spec || device_spec_needs_new_disk(record->spec, spec, &disk, NULL)) {
                changed->epoch++;
                changed->held_boot[0] = '\0'; /* there will be no old disk to hold */
        }
        /* The spec says it from now on, and the next change of it may enable the device. */
        if (!spec->options.enabled)
                changed->stopped = false;
        /* A spec that names another store is the consent to it. No other change is. */
        if (!record->spec || !device_spec_stores_equal(record->spec, spec)) {
                store_carry_single(record, spec, changed);
                if (filesystem_of_note(changed->filesystem).stage == FILESYSTEM_BEGUN)
                        changed->filesystem[0] = '\0'; /* nothing was begun there */
        }
        /* A device keeps its number until its disk is removed; then the reconciler assigns the new one. */
        if (changed->number < 0)
                changed->number = (int)spec->options.id;
}

/* Replace the record by `changed`, which is stored. Take over `spec`, `text`, `owner` and what `changed` has. */
static void take_change(struct store_entry *entry, struct device_record *changed, struct device_spec *spec,
        char *text, char *owner)
{
        struct device_record *record = &entry->record;

        if (record->quarantine)
                device_status_clear(&record->status);
        free(record->quarantine);
        record_stores_free(record->stores);
        device_spec_free(record->spec);
        free(entry->text);
        take_source(record, changed, owner);
        entry->record = *changed;
        entry->record.quarantine = NULL;
        entry->record.spec = spec;
        entry->text = text;
}

static int replace_entry(struct device_store *store, struct store_entry *entry, struct device_spec *spec,
        char *text, const char *source, const struct device_record **ret)
{
        struct device_record *record = &entry->record, changed = *record;
        _cleanup_record_stores_ struct record_stores *stores = NULL;
        _cleanup_free_ char *owner = NULL;
        const struct device_event *event;
        struct event_draft draft;
        int r = copy_source(source, &owner);

        if (r < 0)
                return r;
        r = store_carry_list(record, spec, &stores);
        if (r < 0)
                return r;
        changed.source = owner;
        changed.stores = stores;
        follow_spec(record, spec, &changed);
        if (record->quarantine) {
                changed.status = (struct device_status){};
                r = device_record_explain_unseen(&changed);
                if (r < 0)
                        return r;
        }
        draft = draft_of_spec(record, spec, changed.epoch != record->epoch, source);
        r = device_store_save(store, &changed, text, &draft, &event);
        if (r < 0) {
                if (record->quarantine)
                        device_status_clear(&changed.status);
                return r;
        }
        stores = NULL; /* `changed` has them */
        take_change(entry, &changed, spec, text, TAKE_PTR(owner));
        store_entries_update(&store->entries, entry);
        *ret = &entry->record;
        device_store_announce(store, STORE_SPEC, entry, event);
        return 0;
}

/* The spec stays, and another file owns the device now, or a client after the file has gone. */
static int keep_entry(struct device_store *store, struct store_entry *entry, const char *source)
{
        struct device_record changed = entry->record;
        _cleanup_free_ char *owner = NULL;
        const struct device_event *event;
        int r;

        if (device_record_has_source(&entry->record, source)
                || (!source && device_record_is_owned(&entry->record)))
                return 0;
        r = copy_source(source, &owner);
        if (r < 0)
                return r;
        changed.source = owner;
        r = device_store_save(store, &changed, entry->text, NULL, &event);
        if (r < 0)
                return r;
        take_source(&entry->record, &changed, TAKE_PTR(owner));
        entry->record = changed;
        device_store_announce(store, STORE_INTENT, entry, event);
        return 0;
}

/* Return the other device that has the number which `spec` asks for, or NULL. */
static const struct device_record *owner_of_number(
        const struct device_store *store, const struct device_spec *spec)
{
        int number = (int)spec->options.id;

        return number >= 0 ? store_numbers_owner(&store->entries, number, spec->options.name) : NULL;
}

int device_store_put(struct device_store *store, struct device_spec *spec,
        const struct put_condition *condition, const struct device_record **ret,
        enum put_outcome *ret_outcome, struct problem_list *problems)
{
        struct store_entry *entry = store_entries_find(&store->entries, spec->options.name);
        const struct device_record *owner = owner_of_number(store, spec);
        char *text;
        int r = put_check(spec, entry ? &entry->record : NULL, owner, condition, problems);

        if (r < 0)
                return r;
        if (entry && entry->record.spec && device_spec_equal(entry->record.spec, spec)) {
                r = keep_entry(store, entry, condition->source);
                if (r < 0)
                        return r;
                device_spec_free(spec);
                *ret = &entry->record;
                *ret_outcome = PUT_UNCHANGED;
                return 0;
        }
        text = json_print(spec->document);
        if (!text)
                return -ENOMEM;
        r = entry ? replace_entry(store, entry, spec, text, condition->source, ret)
                  : create_entry(store, spec, text, condition, ret);
        if (r < 0) {
                (void)problem_add(problems, -r, "", r == -ENOSPC ? "DiskFull" : "NotStored",
                        "Storing the device failed: %s. Nothing was changed; %s.", strerror(-r),
                        r == -ENOSPC    ? "make room where the state directory of ublkd is and try again"
                        : r == -ENOLINK ? "the database was deleted or moved away. Restart ublkd: the "
                                          "workers continue to serve, and 'ublkctl adopt --all' takes over "
                                          "their disks"
                                        : "try again");
                free(text);
                return r;
        }
        *ret_outcome = entry ? PUT_REPLACED : PUT_CREATED;
        return 0;
}
