/* SPDX-License-Identifier: MIT */
/* What the devices of a user have, and of a range of users: an index of the devices by user, in which each subtree
 * knows its sum. For the store only. */
#pragma once

#include "ublkd/base/tree.h"
#include "ublkd/store/device_store.h"

/* The part of one device. Zero-initialise. Does not move in memory while it is counted. */
struct store_share {
        bool counted; /* in the index: the device has a user */
        uid_t user;
        struct store_usage own, below; /* below: of the whole subtree */
        struct tree_node node;
};

/* Initialise a zeroed index. */
void store_usage_init(struct tree *users);
/* Count the device as its record is now. */
void store_usage_count(struct tree *users, struct store_share *share, const struct device_record *record);
/* Count it no more. */
void store_usage_take(struct tree *users, struct store_share *share);
/* Return what the devices of all users from `first` to `last` have. Looks at O(log n) devices. */
struct store_usage store_usage_of(const struct tree *users, uid_t first, uid_t last);
/* Return the sums without those of one device. */
struct store_usage store_usage_without(struct store_usage usage, const struct store_share *share);
