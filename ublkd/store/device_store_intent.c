/* SPDX-License-Identifier: MIT */
/* Requests of clients beside the spec (delete, recover, restart, stop, start), and what the reconciler stores for a device.
 * Each is a column of the record. */
#include "ublkd/store/device_store_internal.h"

#include "ublkd/base/sentence.h"
#include "ublkd/store/device_record.h"
#include "ublkd/model/device_spec_store.h"

#include <stdio.h>
#include <string.h>

int device_store_request_delete(struct device_store *store, const char *name, bool force)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        struct device_record changed;

        if (!entry)
                return -ENOENT;
        if (entry->record.deleting && (entry->record.forced || !force))
                return 0;
        changed = entry->record;
        changed.deleting = true;
        changed.forced = force;
        return device_store_update(store, entry, &changed, REASON_DELETE_REQUESTED,
                "A client asked for the removal; ublkd removes the disk and the record.");
}

int device_store_withdraw(struct device_store *store, const char *name)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        struct device_record changed;

        if (!entry)
                return -ENOENT;
        if (entry->record.deleting)
                return 0;
        changed = entry->record;
        changed.deleting = true;
        return device_store_update(store, entry, &changed, REASON_DELETE_REQUESTED,
                "The file that described the device is gone, and the disk is not in use; ublkd removes the "
                "disk and "
                "the record.");
}

int device_store_set_source_state(
        struct device_store *store, const char *name, enum source_state state, const char *trouble)
{
        static const enum condition_reason reasons[_SOURCE_STATE_MAX] = {
                [SOURCE_APPLIED] = REASON_NONE,
                [SOURCE_INVALID] = REASON_FILE_INVALID,
                [SOURCE_REFUSED] = REASON_FILE_REFUSED,
                [SOURCE_GONE] = REASON_FILE_GONE,
        };
        struct store_entry *entry = store_entries_find(&store->entries, name);
        char *copy;

        if (!entry)
                return -ENOENT;
        if (entry->record.source_state == state && sentence_equal(entry->record.source_trouble, trouble))
                return 0;
        copy = trouble ? strdup(trouble) : NULL;
        if (trouble && !copy)
                return -ENOMEM;
        free(entry->record.source_trouble);
        entry->record.source_trouble = copy;
        entry->record.source_state = state;
        if (reasons[state] != REASON_NONE && trouble)
                (void)device_store_note(store, name, EVENT_WARNING, reasons[state], "%s", trouble);
        device_store_announce(store, STORE_INTENT, entry, NULL);
        return 0;
}

int device_store_request_recover(struct device_store *store, const char *name)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        struct device_record changed;

        if (!entry)
                return -ENOENT;
        if (entry->record.recover_requested) {
                device_store_announce(
                        store, STORE_INTENT, entry, NULL); /* a repeated request ends the back-off */
                return 0;
        }
        changed = entry->record;
        changed.recover_requested = true;
        return device_store_update(store, entry, &changed, REASON_RECOVER_REQUESTED,
                "A client asked for a recovery; ublkd tries it at once.");
}

static int request_restart(struct device_store *store, const char *name, enum condition_reason reason,
        const char *message, bool asked)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        struct device_record changed;
        struct event_draft draft;

        if (!entry)
                return -ENOENT;
        changed = entry->record;
        device_record_restart(&changed);
        draft = draft_of(&entry->record, EVENT_NORMAL, reason, message);
        draft.apart = asked;
        return device_store_change(store, entry, &changed, &draft);
}

static int accept_losses(struct device_store *store, const char *name)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        struct device_record changed;

        if (!entry)
                return -ENOENT;
        changed = entry->record;
        device_record_restart(&changed);
        changed.accepted = changed.status.faults;
        changed.accepted_with = changed.restart;
        return device_store_update(store, entry, &changed, REASON_WRITE_ERRORS_ACCEPTED,
                "A client accepted the loss of acknowledged data that the status shows; another worker "
                "takes over the disk next, without these faults.");
}

int device_store_request_restart(struct device_store *store, const char *name, bool accept)
{
        if (accept)
                return accept_losses(store, name);
        return request_restart(store, name, REASON_RESTART_REQUESTED,
                "A client asked for another worker; it takes over the disk next.", true);
}

int device_store_request_upgrade(struct device_store *store, const char *name)
{
        return request_restart(store, name, REASON_WORKER_UPGRADE,
                "The worker has another version than ublkd starts now; another worker takes over the disk "
                "next.",
                false);
}

int device_store_request_stop(struct device_store *store, const char *name)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        struct device_record changed;

        if (!entry)
                return -ENOENT;
        if (entry->record.stopped)
                return 0;
        changed = entry->record;
        changed.stopped = true;
        changed.recover_requested = false;
        return device_store_update(store, entry, &changed, REASON_STOP_REQUESTED,
                "A client asked for the end of the disk; ublkd removes it, until the next boot or until a "
                "client "
                "starts it again.");
}

int device_store_request_start(struct device_store *store, const char *name)
{
        /* No client takes the status of the stop for that of the start. */
        const struct device_status pending = {.phase = PHASE_PENDING,
                .reason = REASON_PENDING,
                .number = -1,
                .message = (char *)"ublkd has not looked at the device since it was asked to start it."};
        struct store_entry *entry = store_entries_find(&store->entries, name);
        struct device_record changed;
        int r;

        if (!entry)
                return -ENOENT;
        if (!entry->record.stopped)
                return device_store_try_again(store, name);
        changed = entry->record;
        changed.stopped = false;
        r = device_store_update(store, entry, &changed, REASON_START_REQUESTED,
                "A client asked for the disk of the stopped device; ublkd creates it.");
        return r < 0 ? r : device_store_set_status(store, name, &pending);
}

int device_store_accept_backing(struct device_store *store, const char *name, const char *identity)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        struct device_record changed;
        const struct backing_identity *found;
        int r;

        if (!entry)
                return -ENOENT;
        found = &entry->record.status.backing.found;
        if (backing_identity_is_empty(found) || strcmp(backing_identity_text(found), identity) != 0)
                return -ESTALE;
        changed = entry->record;
        changed.backing = *found;
        changed.recover_requested = true;
        r = device_record_boot(changed.backing_boot);
        if (r < 0)
                return r;
        return device_store_update(store, entry, &changed, REASON_BACKING_ACCEPTED,
                "A client accepted another backing store in place of the one that the disk was created on; "
                "ublkd uses it next.");
}

/* Save the record of the entry with these stores, taken over. */
static int update_stores(struct device_store *store, struct store_entry *entry, struct device_record *changed,
        struct record_stores *stores, enum condition_reason reason, const char *message)
{
        struct record_stores *before = entry->record.stores;
        int r;

        changed->stores = stores;
        r = device_store_update(store, entry, changed, reason, message);
        record_stores_free(r < 0 ? stores : before);
        return r;
}

/* The status may still be that of an earlier spec. */
static int find_store(const struct device_record *record, const char *pointer, unsigned *ret)
{
        unsigned count = record->spec && device_spec_has_list(record->spec) ? record->status.store_count : 0;
        char now[TARGET_POINTER_SIZE];

        for (unsigned i = 0; i < count; i++) {
                device_spec_store_pointer(record->spec, i, now);
                if (strcmp(record->status.stores[i].pointer, pointer) == 0 && strcmp(now, pointer) == 0
                        && device_spec_store_path(record->spec, i)) {
                        *ret = i;
                        return 0;
                }
        }
        return -ESTALE;
}

int device_store_accept_listed(
        struct device_store *store, const char *name, const char *pointer, const char *identity)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        const struct backing_identity *found;
        struct device_record changed;
        struct record_stores *stores;
        char boot[UID_TEXT_SIZE];
        unsigned number;
        int r = entry ? find_store(&entry->record, pointer, &number) : -ENOENT;

        if (r < 0)
                return r;
        found = &entry->record.status.stores[number].found;
        if (backing_identity_is_empty(found) || strcmp(backing_identity_text(found), identity) != 0)
                return -ESTALE;
        if (record_stores_elsewhere(
                    entry->record.stores, number, device_spec_store_path(entry->record.spec, number), found))
                return -EXDEV;
        r = device_record_boot(boot);
        if (r >= 0)
                r = record_stores_with(entry->record.stores, number,
                        device_spec_store_path(entry->record.spec, number), found, boot, &stores);
        if (r < 0)
                return r;
        changed = entry->record;
        changed.recover_requested = true;
        return update_stores(store, entry, &changed, stores, REASON_BACKING_ACCEPTED,
                "A client accepted another backing store in place of one of those that the disk was created "
                "on; ublkd uses it next.");
}

int device_store_set_listed(struct device_store *store, const char *name,
        const struct backing_identity *identities, unsigned count, const char *boot)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        struct record_stores *stores = NULL, *next;
        struct device_record changed;
        int r = entry ? 0 : -ENOENT;

        for (unsigned i = 0; r >= 0 && i < count; i++) {
                const char *path = entry->record.spec ? device_spec_store_path(entry->record.spec, i) : NULL;

                if (!path || backing_identity_is_empty(&identities[i]))
                        continue;
                r = record_stores_with(
                        stores ? stores : entry->record.stores, i, path, &identities[i], boot, &next);
                if (r < 0)
                        break;
                record_stores_free(stores);
                stores = next;
        }
        if (r < 0 || !stores) {
                record_stores_free(stores);
                return r;
        }
        changed = entry->record;
        return update_stores(store, entry, &changed, stores, REASON_NONE, NULL);
}

int device_store_set_backing(struct device_store *store, const char *name,
        const struct backing_identity *identity, const char *boot)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        struct device_record changed;

        if (!entry)
                return -ENOENT;
        changed = entry->record;
        changed.backing = *identity;
        snprintf(changed.backing_boot, sizeof(changed.backing_boot), "%s", boot);
        return device_store_update(store, entry, &changed, REASON_NONE, NULL);
}

int device_store_set_filesystem(struct device_store *store, const char *name, const char *note)
{
        /* clang-format off */
        static const struct {
                enum condition_reason reason;
                const char *message;
        } events[_FILESYSTEM_STAGE_MAX] = {
                [FILESYSTEM_BEGUN] = {REASON_FILE_SYSTEM_BEGUN,
                        "A client asked for a file system, and the disk is blank; a program makes it now."},
                [FILESYSTEM_MADE] = {REASON_FILE_SYSTEM_MADE,
                        "The file system that a client asked for is on the disk."},
        };
        /* clang-format on */
        struct store_entry *entry = store_entries_find(&store->entries, name);
        struct device_record changed;
        enum filesystem_stage stage = filesystem_of_note(note).stage;

        if (!entry)
                return -ENOENT;
        changed = entry->record;
        snprintf(changed.filesystem, sizeof(changed.filesystem), "%s", note);
        return device_store_update(store, entry, &changed, events[stage].reason, events[stage].message);
}

/* Save the record of the entry with other holders. */
static int set_holders(
        struct device_store *store, struct store_entry *entry, const char *boot, const char *holders)
{
        struct device_record changed = entry->record;
        int r = 0;

        if (strcmp(changed.mount_holders, holders) != 0) {
                memcpy(changed.mount_holders, holders, sizeof(changed.mount_holders));
                r = device_store_update(store, entry, &changed, REASON_NONE, NULL);
        }
        return r < 0 ? r : (int)mount_holders_count(holders, boot);
}

int device_store_hold_mount(struct device_store *store, const char *name, const char *holder)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        char holders[MOUNT_HOLDERS_SIZE], boot[UID_TEXT_SIZE];
        int r = entry ? device_record_boot(boot) : -ENOENT;

        if (r < 0)
                return r;
        memcpy(holders, entry->record.mount_holders, sizeof(holders));
        r = mount_holders_add(holders, boot, holder);
        if (r <= 0)
                return r;
        r = set_holders(store, entry, boot, holders);
        return r < 0 ? r : 1;
}

int device_store_release_mount(struct device_store *store, const char *name, const char *holder)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        char holders[MOUNT_HOLDERS_SIZE] = "", boot[UID_TEXT_SIZE];
        int r = entry ? device_record_boot(boot) : -ENOENT;

        if (r < 0)
                return r;
        if (holder) {
                memcpy(holders, entry->record.mount_holders, sizeof(holders));
                (void)mount_holders_remove(holders, boot, holder);
        }
        return set_holders(store, entry, boot, holders);
}

int device_store_set_mount(struct device_store *store, const char *name, const char *path)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);

        if (!entry)
                return -ENOENT;
        if (strcmp(entry->record.mount, path) == 0)
                return 0;
        snprintf(entry->record.mount, sizeof(entry->record.mount), "%s", path);
        store_entries_update(&store->entries, entry);
        device_store_announce(store, STORE_INTENT, entry, NULL);
        return 0;
}

void device_store_set_mount_change(struct device_store *store, const char *name, enum mount_change change)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);

        if (!entry || entry->record.mount_change == change)
                return;
        entry->record.mount_change = change;
        if (change == MOUNT_STAYS) /* the private node waits for that */
                device_store_announce(store, STORE_INTENT, entry, NULL);
}

int device_store_try_again(struct device_store *store, const char *name)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);

        if (!entry)
                return -ENOENT;
        entry->record.asked++;
        device_store_announce(store, STORE_INTENT, entry, NULL);
        return 0;
}

int device_store_refuse_restart(struct device_store *store, const char *name)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        struct device_record changed;

        if (!entry)
                return -ENOENT;
        changed = entry->record;
        changed.restart_refused = changed.restart;
        return device_store_update(store, entry, &changed, REASON_NONE, NULL);
}

int device_store_assign_number(struct device_store *store, const char *name, int number)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        struct device_record changed;

        if (!entry)
                return -ENOENT;
        if (entry->record.number == number)
                return 0;
        if (number >= 0 && device_store_number_owner(store, number, name))
                return -EADDRINUSE;
        changed = entry->record;
        changed.number = number;
        return device_store_update(store, entry, &changed, REASON_NONE, NULL);
}

int device_store_set_held(struct device_store *store, const char *name, bool held)
{
        struct store_entry *entry = store_entries_find(&store->entries, name);
        struct device_record changed;
        int r;

        if (!entry)
                return -ENOENT;
        changed = entry->record;
        memset(changed.held_boot, 0, sizeof(changed.held_boot));
        changed.recover_requested = false;
        if (held) {
                r = device_record_boot(changed.held_boot);
                if (r < 0)
                        return r;
        }
        if (strcmp(changed.held_boot, entry->record.held_boot) == 0
                && changed.recover_requested == entry->record.recover_requested)
                return 0;
        return device_store_update(store, entry, &changed, REASON_NONE, NULL);
}
