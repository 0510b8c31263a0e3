/* SPDX-License-Identifier: MIT */
/* The devices of a user, in the order of their names, and what those of a range of users have: an index by user and name,
 * in which each subtree knows its sum. For the store only. */
#pragma once

#include "ublkd/base/tree.h"
#include "ublkd/store/device_store.h"

/* The part of one device. Zero-initialise. Does not move in memory while it is counted. */
struct store_share {
        bool counted; /* in the index: the device has a user */
        uid_t user;
        const struct device_record *record; /* whose name stays the same */
        struct store_usage own, below;      /* below: of the whole subtree */
        struct tree_node node;
};

/* Initialise a zeroed index. */
void store_usage_init(struct tree *users);
/* Count the device as its record is now. The record does not move in memory while it is counted. */
void store_usage_count(struct tree *users, struct store_share *share, const struct device_record *record);
/* Count it no more. */
void store_usage_take(struct tree *users, struct store_share *share);
/* Return the first device of the user whose name sorts after `name` (NULL: the first of all), or NULL. Looks at O(log n)
 * devices. */
const struct store_share *store_usage_next(const struct tree *users, uid_t user, const char *name);
/* Return the device after `share`, of the same user, without a search, or NULL. */
const struct store_share *store_usage_after(const struct store_share *share);
/* Return what the devices of all users from `first` to `last` have. Looks at O(log n) devices. */
struct store_usage store_usage_of(const struct tree *users, uid_t first, uid_t last);
/* Return the sums without those of one device. */
struct store_usage store_usage_without(struct store_usage usage, const struct store_share *share);
