/* SPDX-License-Identifier: MIT */
/* The records of the store in memory, and their indexes. */
#include "ublkd/store/store_entries.h"

#include "ublkd/store/device_record.h"

#include <assert.h>
#include <string.h>

static_assert((int)NUMBER_SET_MAX == (int)DEVICE_NUMBER_MAX, "the set has a bit for every number");

static struct store_entry *of_names(const struct tree_node *node)
{
        return TREE_OBJECT(node, struct store_entry, by_name);
}

static struct store_entry *of_uids(const struct tree_node *node)
{
        return TREE_OBJECT(node, struct store_entry, by_uid);
}

static struct store_entry *of_mounts(const struct tree_node *node)
{
        return TREE_OBJECT(node, struct store_entry, by_mount);
}

static struct store_number *of_numbers(const struct tree_node *node)
{
        return TREE_OBJECT(node, struct store_number, node);
}

/* ---- keys ---- */

static int compare_name(const void *key, const struct tree_node *node)
{
        return strcmp(key, of_names(node)->record.name);
}

static int compare_mounted(const void *key, const struct tree_node *node)
{
        return strcmp(key, of_mounts(node)->record.name);
}

/* A damaged database may hold a uid twice: the name makes the key unique. */
struct uid_key {
        const char *uid, *name;
};

static int compare_uid(const void *key, const struct tree_node *node)
{
        const struct device_record *record = &of_uids(node)->record;
        const struct uid_key *uid = key;
        int order = strcmp(uid->uid, record->uid);

        return order != 0 ? order : strcmp(uid->name, record->name);
}

struct number_key {
        int number;
        const char *name;
};

static int compare_number(const void *key, const struct tree_node *node)
{
        const struct store_number *other = of_numbers(node);
        const struct number_key *number = key;

        if (number->number != other->number)
                return number->number < other->number ? -1 : 1;
        return strcmp(number->name, other->entry->record.name);
}

static struct uid_key uid_key_of(const struct store_entry *entry)
{
        return (struct uid_key){.uid = entry->record.uid, .name = entry->record.name};
}

/* ---- the whole ---- */

struct store_entry *store_entry_free(struct store_entry *entry)
{
        if (!entry)
                return NULL;
        device_record_clear(&entry->record);
        free(entry->text);
        free(entry);
        return NULL;
}

void store_entries_init(struct store_entries *entries)
{
        entries->names.compare = compare_name;
        entries->uids.compare = compare_uid;
        entries->mounts.compare = compare_mounted;
        entries->numbers.compare = compare_number;
        store_usage_init(&entries->users);
}

void store_entries_clear(struct store_entries *entries)
{
        struct store_entry *entry;

        while ((entry = of_names(entries->names.first))) {
                store_entries_take(entries, entry);
                store_entry_free(entry);
        }
}

size_t store_entries_count(const struct store_entries *entries)
{
        return entries->names.count;
}

/* ---- by name and uid ---- */

struct store_entry *store_entries_find(const struct store_entries *entries, const char *name)
{
        return of_names(tree_find(&entries->names, name));
}

struct store_entry *store_entries_next(const struct store_entries *entries, const char *name)
{
        return of_names(name ? tree_after(&entries->names, name) : entries->names.first);
}

struct store_entry *store_entries_after(const struct store_entry *entry)
{
        return of_names(entry->by_name.next);
}

struct store_entry *store_entries_find_uid(const struct store_entries *entries, const char *uid)
{
        struct store_entry *entry =
                of_uids(tree_from(&entries->uids, &(const struct uid_key){.uid = uid, .name = ""}));

        return entry && strcmp(entry->record.uid, uid) == 0 ? entry : NULL;
}

/* ---- by number ---- */

struct store_number *store_entries_of_number(const struct store_entries *entries, int number)
{
        struct store_number *found =
                of_numbers(tree_from(&entries->numbers, &(const struct number_key){number, ""}));

        return found && found->number == number ? found : NULL;
}

struct store_number *store_entries_same_number(const struct store_number *number)
{
        struct store_number *next = of_numbers(number->node.next);

        return next && next->number == number->number ? next : NULL;
}

static void set_number(
        struct store_entries *entries, struct store_entry *entry, struct store_number *slot, int number)
{
        const struct number_key old = {slot->number, entry->record.name}, new = {number, entry->record.name};

        if (slot->entry && slot->number >= 0) {
                (void)tree_remove(&entries->numbers, &old);
                if (!store_entries_of_number(entries, old.number))
                        number_set_remove(&entries->taken, old.number);
        }
        slot->entry = entry;
        slot->number = number;
        if (number >= 0) {
                tree_insert(&entries->numbers, &new, &slot->node);
                number_set_add(&entries->taken, number);
        }
}

/* If the spec asks for the number that the entry has, it is indexed once. */
static void renumber(struct store_entries *entries, struct store_entry *entry)
{
        const struct device_record *record = &entry->record;
        int has = record->number, asks = record->spec ? (int)record->spec->options.id : -1;

        if (asks == has)
                asks = -1;
        if (entry->has.entry && entry->has.number == has && entry->asks.number == asks)
                return;
        set_number(entries, entry, &entry->asks, -1);
        set_number(entries, entry, &entry->has, has);
        set_number(entries, entry, &entry->asks, asks);
}

/* ---- by mount ---- */

static void set_mounted(struct store_entries *entries, struct store_entry *entry, bool is_mounted)
{
        if (is_mounted == entry->is_mounted)
                return;
        entry->is_mounted = is_mounted;
        if (is_mounted)
                tree_insert(&entries->mounts, entry->record.name, &entry->by_mount);
        else
                (void)tree_remove(&entries->mounts, entry->record.name);
}

struct store_entry *store_entries_next_mounted(const struct store_entries *entries, const char *name)
{
        return of_mounts(name ? tree_after(&entries->mounts, name) : entries->mounts.first);
}

/* ---- by user ---- */

static struct store_entry *of_share(const struct store_share *share)
{
        return TREE_OBJECT(share, struct store_entry, share);
}

struct store_entry *store_entries_next_of(const struct store_entries *entries, uid_t user, const char *name)
{
        return of_share(store_usage_next(&entries->users, user, name));
}

struct store_entry *store_entries_after_of(const struct store_entry *entry)
{
        return of_share(store_usage_after(&entry->share));
}

struct store_usage store_entries_usage(
        const struct store_entries *entries, uid_t first, uid_t last, const char *except)
{
        const struct store_entry *entry = store_entries_find(entries, except);
        struct store_usage usage = store_usage_of(&entries->users, first, last);

        if (!entry || !entry->share.counted || entry->share.user < first || entry->share.user > last)
                return usage;
        return store_usage_without(usage, &entry->share);
}

/* ---- changes ---- */

void store_entries_update(struct store_entries *entries, struct store_entry *entry)
{
        renumber(entries, entry);
        set_mounted(entries, entry, *entry->record.mount != '\0');
        store_usage_count(&entries->users, &entry->share, &entry->record);
}

void store_entries_insert(struct store_entries *entries, struct store_entry *entry)
{
        const struct uid_key uid = uid_key_of(entry);

        tree_insert(&entries->names, entry->record.name, &entry->by_name);
        tree_insert(&entries->uids, &uid, &entry->by_uid);
        store_entries_update(entries, entry);
}

void store_entries_take(struct store_entries *entries, struct store_entry *entry)
{
        const struct uid_key uid = uid_key_of(entry);

        (void)tree_remove(&entries->names, entry->record.name);
        (void)tree_remove(&entries->uids, &uid);
        set_number(entries, entry, &entry->asks, -1);
        set_number(entries, entry, &entry->has, -1);
        set_mounted(entries, entry, false);
        store_usage_take(&entries->users, &entry->share);
}
