/* SPDX-License-Identifier: MIT */
/* Finds the records of devices, by name, uid and number, and what users have. */
#include "ublkd/store/device_store_internal.h"
#include "ublkd/store/store_numbers.h"

size_t device_store_count(const struct device_store *store)
{
        return store_entries_count(&store->entries);
}

static const struct device_record *record_of(const struct store_entry *entry)
{
        return entry ? &entry->record : NULL;
}

const struct device_record *device_store_get(const struct device_store *store, const char *name)
{
        return record_of(store_entries_find(&store->entries, name));
}

const struct device_record *device_store_find_uid(const struct device_store *store, const char *uid)
{
        return record_of(store_entries_find_uid(&store->entries, uid));
}

const struct device_record *device_store_next(const struct device_store *store, const char *name)
{
        return record_of(store_entries_next(&store->entries, name));
}

const struct device_record *device_store_after(const struct device_record *record)
{
        return record_of(store_entries_after(TREE_OBJECT(record, struct store_entry, record)));
}

const struct device_record *device_store_next_of(
        const struct device_store *store, const char *tenant, const char *name)
{
        uid_t user;

        return tenant_user(tenant, &user) ? record_of(store_entries_next_of(&store->entries, user, name))
                                          : NULL;
}

const struct device_record *device_store_after_of(const struct device_record *record)
{
        return record_of(store_entries_after_of(TREE_OBJECT(record, struct store_entry, record)));
}

const struct device_record *device_store_next_mounted(const struct device_store *store, const char *name)
{
        return record_of(store_entries_next_mounted(&store->entries, name));
}

const struct device_record *device_store_of_number(const struct device_store *store, int number)
{
        const struct store_number *owner =
                number < 0 ? NULL : store_entries_of_number(&store->entries, number);

        while (owner && owner->entry->record.number != number) /* its spec only asks for the number */
                owner = store_entries_same_number(owner);
        return owner ? &owner->entry->record : NULL;
}

const struct device_record *device_store_number_owner(
        const struct device_store *store, int number, const char *name)
{
        return store_numbers_owner(&store->entries, number, name);
}

int device_store_free_number(const struct device_store *store, int from, const char *name, int *ret)
{
        return store_numbers_free(&store->entries, from, name, ret);
}

struct store_usage device_store_usage(
        const struct device_store *store, uid_t first, uid_t last, const char *except)
{
        return store_entries_usage(&store->entries, first, last, except);
}

void device_store_set_accounts(struct device_store *store, account_of_user first, void *userdata)
{
        event_log_set_accounts(store->events, first, userdata);
}
