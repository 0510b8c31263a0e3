/* SPDX-License-Identifier: MIT */
/* One backing store of a device, as the supervisor keeps it while the disk exists. device_backing.h says for how long. */
#pragma once

#include "ublkd/reconcile/parts/kept_store_part.h"

struct managed_device;

/* Return whether `fd` is the store in `at`. Reads what the kernel has in memory, so it waits for no server. */
bool kept_store_is_at(int fd, const struct worker_store *at);
/* Know the store. number: its place among those of the device. */
void kept_store_learn(struct managed_device *device, unsigned number, struct kept_store *store,
        const struct worker_store *at);
/* Hold a descriptor of it, taken over, in place of an earlier one. epoch: of the disk. */
void kept_store_hold(
        struct managed_device *device, unsigned number, struct kept_store *store, uint16_t epoch, int fd);
/* Take what the service manager has kept for the disk of that epoch; of number 0 for the newest disk, of which *epoch becomes the
 * epoch. */
void kept_store_recall(
        struct managed_device *device, unsigned number, struct kept_store *store, uint16_t *epoch);
/* Close the descriptors and empty it; the service manager and the worker keep theirs. */
void kept_store_close(struct managed_device *device, struct kept_store *store);
/* Close it for good: the disk of that epoch was removed. An exclusive open that another device relies on becomes that
 * device's. What was refused stays. */
void kept_store_release(
        struct managed_device *device, unsigned number, struct kept_store *store, uint16_t epoch);
/* Return whether it is a file without a name; false also if unknown. */
bool kept_store_is_unnamed(const struct kept_store *store);
