/* SPDX-License-Identifier: MIT */
/* The records of the store in memory, indexed by name, by uid and by number. For the store only. */
#pragma once

#include "ublkd/base/number_set.h"
#include "ublkd/base/tree.h"
#include "ublkd/store/device_store.h"

/* A number that an entry has, or that its spec asks for. */
struct store_number {
        int number; /* -1: none, not in the index */
        struct store_entry *entry;
        struct tree_node node;
};

struct store_entry {
        struct device_record record;
        char *text; /* the spec as it is stored, whether or not it can be parsed */
        /* For store_entries.c. */
        struct tree_node by_name, by_uid;
        struct store_number has, asks;
};

/* NULL is fine; returns NULL. */
struct store_entry *store_entry_free(struct store_entry *entry);
DEFINE_CLEANUP(struct store_entry, store_entry_free);
#define _cleanup_store_entry_ _cleanup_(store_entry_free_pointer)

/* Owns its entries, which stay where they are in memory as long as they are in it. Every operation looks at
 * O(log n) entries. */
struct store_entries {
        struct tree names, uids, numbers;
        struct number_set taken; /* the numbers in `numbers` */
};

/* Initialise zeroed entries. */
void store_entries_init(struct store_entries *entries);
/* Frees all entries. */
void store_entries_clear(struct store_entries *entries);

size_t store_entries_count(const struct store_entries *entries);
/* NULL: there is none of that name. */
struct store_entry *store_entries_find(const struct store_entries *entries, const char *name);
/* Return the first one whose name sorts after `name` (NULL: the first), or NULL. */
struct store_entry *store_entries_next(const struct store_entries *entries, const char *name);
/* The same for one that is in it, without a search. */
struct store_entry *store_entries_after(const struct store_entry *entry);
/* NULL: there is none with that uid. */
struct store_entry *store_entries_find_uid(const struct store_entries *entries, const char *uid);

/* Takes `entry` over. There is none of its name. */
void store_entries_insert(struct store_entries *entries, struct store_entry *entry);
/* `entry` is the caller's from now on. */
void store_entries_take(struct store_entries *entries, struct store_entry *entry);
/* The record of `entry` was replaced by another one with the same name and uid: index its numbers. */
void store_entries_renumber(struct store_entries *entries, struct store_entry *entry);

/* Return the first in the order of names that has `number` or asks for it, or NULL. */
struct store_number *store_entries_of_number(const struct store_entries *entries, int number);
/* Return the next one with the same number, or NULL. */
struct store_number *store_entries_same_number(const struct store_number *number);
