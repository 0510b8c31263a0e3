/* SPDX-License-Identifier: MIT */
/* The records of the store in memory, indexed by name, by uid, by number and by user. For the store only. */
#pragma once

#include "ublkd/base/number_set.h"
#include "ublkd/base/tree.h"
#include "ublkd/store/device_store.h"
#include "ublkd/store/store_usage.h"

/* A number that the device of an entry has, or that its spec asks for. */
struct store_number {
        int number; /* -1: none, not in the index */
        struct store_entry *entry;
        struct tree_node node;
};

struct store_entry {
        struct device_record record;
        char *text; /* the spec as it is stored, also if it cannot be parsed */
        /* For store_entries.c. */
        struct tree_node by_name, by_uid;
        struct tree_node by_mount; /* only while `is_mounted` */
        bool is_mounted;
        struct store_number has, asks;
        struct store_share share;
};

/* Free an entry that is in no store_entries. NULL is fine. Return NULL. */
struct store_entry *store_entry_free(struct store_entry *entry);
DEFINE_CLEANUP(struct store_entry, store_entry_free);
#define _cleanup_store_entry_ _cleanup_(store_entry_free_pointer)

/* Owns its entries. An entry does not move in memory while it is in here. Every operation looks at O(log n)
 * entries. */
struct store_entries {
        struct tree names, uids, mounts, numbers, users; /* mounts: by name, those that are mounted */
        struct number_set taken;                         /* the numbers in `numbers` */
};

/* Initialise zeroed entries. */
void store_entries_init(struct store_entries *entries);
/* Free all entries. */
void store_entries_clear(struct store_entries *entries);

/* Return how many entries there are. */
size_t store_entries_count(const struct store_entries *entries);
/* Return the entry called `name`, or NULL. */
struct store_entry *store_entries_find(const struct store_entries *entries, const char *name);
/* Return the first entry whose name sorts after `name` (NULL: the first of all), or NULL. */
struct store_entry *store_entries_next(const struct store_entries *entries, const char *name);
/* Return the entry after one that is in here, as store_entries_next(), without a search. */
struct store_entry *store_entries_after(const struct store_entry *entry);
/* Return the entry with this uid, or NULL. */
struct store_entry *store_entries_find_uid(const struct store_entries *entries, const char *uid);

/* Return the first entry of a user whose name sorts after `name` (NULL: the first of all), or NULL. */
struct store_entry *store_entries_next_of(const struct store_entries *entries, uid_t user, const char *name);
/* Return the entry of the same user after one that has a user, without a search, or NULL. */
struct store_entry *store_entries_after_of(const struct store_entry *entry);
/* Return what the devices of the users from `first` to `last` have, beside the one called `except`. */
struct store_usage store_entries_usage(
        const struct store_entries *entries, uid_t first, uid_t last, const char *except);

/* Insert `entry` and take it over. The caller has checked that its name is free. */
void store_entries_insert(struct store_entries *entries, struct store_entry *entry);
/* Remove `entry`; the caller owns it from now on. */
void store_entries_take(struct store_entries *entries, struct store_entry *entry);
/* Index the numbers, the mount, the user and the size of `entry` again, after its record was replaced by one with the same name and
 * uid. */
void store_entries_update(struct store_entries *entries, struct store_entry *entry);

/* Return the first mounted entry whose name sorts after `name` (NULL: the first of all), or NULL. */
struct store_entry *store_entries_next_mounted(const struct store_entries *entries, const char *name);

/* Return the first entry, by name, that has `number` or asks for it, or NULL. */
struct store_number *store_entries_of_number(const struct store_entries *entries, int number);
/* Return the next entry with the same number, or NULL. */
struct store_number *store_entries_same_number(const struct store_number *number);
