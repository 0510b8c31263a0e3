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
        struct tree_node by_pid, by_place;
        pid_t pid; /* 0: none */
        bool has_place;
        struct store_place place;
};

/* The devices that have each key. Private to device_keys.c. */
struct device_index {
        struct tree by_pid, by_place;
};

/* Begin with empty indexes. */
void device_keys_init(struct reconciler *reconciler);

/* Set the process of the worker, or remove it (0). */
void device_keys_set_pid(struct managed_device *device, pid_t pid);
/* Set the backing store of the disk, or remove it (NULL). */
void device_keys_set_store(struct managed_device *device, const struct worker_store *store);

/* Return another device than `self` whose worker is that process, or NULL. */
struct managed_device *device_keys_find_pid(const struct managed_device *self, pid_t pid);

/* Return whether both are the same store. */
bool device_keys_same_store(const struct worker_store *one, const struct worker_store *other);
/* Return the first device on that store, whichever disk is named; the one after `device`; NULL: there is none. */
struct managed_device *device_keys_first_on(
        const struct reconciler *reconciler, const struct worker_store *store);
struct managed_device *device_keys_next_on(const struct managed_device *device);
/* Each device on a store. The body changes the keys of none of them. */
#define DEVICE_ON_STORE_FOREACH(device, reconciler, store)                                                   \
        for (struct managed_device *device = device_keys_first_on(reconciler, store); device;                \
                device = device_keys_next_on(device))
