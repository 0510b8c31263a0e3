/* SPDX-License-Identifier: MIT */
/* The records of the store in memory, sorted by name. For the store only. */
#pragma once

#include "ublkd/store/device_store.h"

struct store_entry {
        struct device_record record;
        char *text; /* the spec as it is stored, whether or not it can be parsed */
};

/* NULL is fine; returns NULL. */
struct store_entry *store_entry_free(struct store_entry *entry);
DEFINE_CLEANUP(struct store_entry, store_entry_free);
#define _cleanup_store_entry_ _cleanup_(store_entry_free_pointer)

/* Zeroed: empty. Owns its entries, which stay where they are in memory as long as they are in it. */
struct store_entries {
        struct store_entry **items; /* sorted by the record's name */
        size_t count, allocated;
};

/* Frees all entries. */
void store_entries_clear(struct store_entries *entries);

/* True: `*ret` is the index of `name`; false: the index at which it would have to be inserted. */
bool store_entries_index(const struct store_entries *entries, const char *name, size_t *ret);
/* NULL: there is none of that name. */
struct store_entry *store_entries_find(const struct store_entries *entries, const char *name);

/* Makes room for one more, so that store_entries_insert() cannot fail. 0 or -ENOMEM. */
int store_entries_reserve(struct store_entries *entries);
/* Takes `entry` over. There is room for it, and none of its name. */
void store_entries_insert(struct store_entries *entries, struct store_entry *entry);
/* The entry at `index`, which is the caller's from now on. */
struct store_entry *store_entries_take(struct store_entries *entries, size_t index);
