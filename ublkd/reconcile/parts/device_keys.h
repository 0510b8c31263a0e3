/* SPDX-License-Identifier: MIT */
/* Other ways to a device than its name: by the process of its worker, and by its backing store. Several devices can have
 * the same key: parts of one disk, or a dead worker whose pid another process has. They come in the order of their
 * names. */
#pragma once

#include "ublkd/base/tree.h"
#include "ublkd/workers/worker_store.h"

#include <sys/types.h>

struct managed_device;
struct reconciler;

/* Where a store is: two with the same place are one. */
struct store_place {
        uint32_t major, minor;
        uint64_t inode;
        bool is_disk;
};

/* The keys of one device. Zeroed it has none. Private to device_keys.c. */
struct device_keys {
        struct tree_node by_pid;
        pid_t pid; /* 0: none */
};

/* The key of one backing store of a device. Zeroed it is none; it does not move in memory while it is one. Others read `device` and
 * `number`. */
struct store_key {
        struct tree_node by_place;
        bool has_place;
        struct store_place place;
        struct managed_device *device;
        unsigned number; /* of the store, among those of the device */
};

/* The devices that have each key. Private to device_keys.c. */
struct device_index {
        struct tree by_pid, by_place;
};

/* Begin with empty indexes. */
void device_keys_init(struct reconciler *reconciler);

/* Set the process of the worker, or remove it (0). */
void device_keys_set_pid(struct managed_device *device, pid_t pid);
/* Make `key` that of a backing store of the disk, or of none (NULL). */
void device_keys_set_store(struct managed_device *device, struct store_key *key, unsigned number,
        const struct worker_store *store);

/* Return another device than `self` whose worker is that process, or NULL. */
struct managed_device *device_keys_find_pid(const struct managed_device *self, pid_t pid);

/* Return whether both are the same store. */
bool device_keys_same_store(const struct worker_store *one, const struct worker_store *other);
/* Return the first key of that store, the one after `key`; NULL: there is none. */
struct store_key *device_keys_first_on(const struct reconciler *reconciler, const struct worker_store *store);
struct store_key *device_keys_next_on(const struct store_key *key);
/* Each device on a store, once for each target of it that lies there. The body changes no key. */
#define DEVICE_ON_STORE_FOREACH(key, reconciler, store)                                                      \
        for (struct store_key *key = device_keys_first_on(reconciler, store); key;                           \
                key = device_keys_next_on(key))
