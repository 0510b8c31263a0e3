/* SPDX-License-Identifier: MIT */
/* The list of the devices, by name, and by number with the help of the store. */
#pragma once

#include "ublkd/base/tree.h"
#include "ublkd/store/device_store.h"

struct managed_device;
struct reconciler;

/* The keys of a device. Set when it is created. */
struct device_identity {
        char *name; /* owned */
        char uid[UID_TEXT_SIZE];
        struct tree_node by_name; /* private to reconciler_devices.c */
};

/* Begin with an empty index of the devices. */
void reconciler_devices_init(struct reconciler *reconciler);
/* Add the device. The caller has checked that its name is free. */
void reconciler_devices_add(struct managed_device *device);
void reconciler_devices_remove(struct managed_device *device);
/* Return the device of that name, or NULL. */
struct managed_device *reconciler_find(const struct reconciler *reconciler, const char *name);
/* Return the device whose record has that number, or NULL. */
struct managed_device *reconciler_find_number(const struct reconciler *reconciler, int number);
/* Return the first device; the one after `device`; NULL: there is none. */
struct managed_device *reconciler_first(const struct reconciler *reconciler);
struct managed_device *reconciler_after(const struct managed_device *device);
#define MANAGED_DEVICE_FOREACH(device, reconciler)                                                           \
        for (struct managed_device *device = reconciler_first(reconciler); device;                           \
                device = reconciler_after(device))
