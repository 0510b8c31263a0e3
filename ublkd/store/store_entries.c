/* SPDX-License-Identifier: MIT */
/* A sorted array: devices are looked up by name far more often than they come and go. */
#include "ublkd/store/store_entries.h"

#include "ublkd/store/device_record.h"

#include <assert.h>
#include <string.h>

struct store_entry *store_entry_free(struct store_entry *entry)
{
        if (!entry)
                return NULL;
        device_record_clear(&entry->record);
        free(entry->text);
        free(entry);
        return NULL;
}

void store_entries_clear(struct store_entries *entries)
{
        for (size_t i = 0; i < entries->count; i++)
                store_entry_free(entries->items[i]);
        free(entries->items);
        *entries = (struct store_entries){};
}

bool store_entries_index(const struct store_entries *entries, const char *name, size_t *ret)
{
        size_t low = 0, high = entries->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int order = strcmp(entries->items[middle]->record.name, name);

                if (order == 0) {
                        *ret = middle;
                        return true;
                }
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        *ret = low;
        return false;
}

struct store_entry *store_entries_find(const struct store_entries *entries, const char *name)
{
        size_t i;

        return store_entries_index(entries, name, &i) ? entries->items[i] : NULL;
}

int store_entries_reserve(struct store_entries *entries)
{
        size_t wanted = entries->allocated ? entries->allocated * 2 : 16;
        struct store_entry **items;

        if (entries->count < entries->allocated)
                return 0;
        items = reallocarray(entries->items, wanted, sizeof(*items));
        if (!items)
                return -ENOMEM;
        entries->items = items;
        entries->allocated = wanted;
        return 0;
}

void store_entries_insert(struct store_entries *entries, struct store_entry *entry)
{
        struct store_entry **place;
        size_t i;

        (void)store_entries_index(
                entries, entry->record.name, &i); /* it is not there: i is where it belongs */
        assert(entries->count < entries->allocated);
        place = &entries->items[i];
        memmove(place + 1, place, (entries->count - i) * sizeof(*place));
        *place = entry;
        entries->count++;
}

struct store_entry *store_entries_take(struct store_entries *entries, size_t index)
{
        struct store_entry **place, *entry;

        assert(index < entries->count);
        place = &entries->items[index];
        entry = *place;
        entries->count--;
        memmove(place, place + 1, (entries->count - index) * sizeof(*place));
        return entry;
}
