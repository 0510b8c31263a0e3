/* SPDX-License-Identifier: MIT */
/* The list of the devices, by name, and by number with the help of the store. */
#include "ublkd/reconcile/parts/reconciler_devices.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include <string.h>

static struct managed_device *device_of(const struct tree_node *node)
{
        return TREE_OBJECT(node, struct managed_device, id.by_name);
}

static int compare_name(const void *key, const struct tree_node *node)
{
        return strcmp(key, device_of(node)->id.name);
}

void reconciler_devices_init(struct reconciler *reconciler)
{
        reconciler->devices = (struct tree){.compare = compare_name};
}

void reconciler_devices_add(struct managed_device *device)
{
        tree_insert(&device->reconciler->devices, device->id.name, &device->id.by_name);
}

void reconciler_devices_remove(struct managed_device *device)
{
        (void)tree_remove(&device->reconciler->devices, device->id.name);
}

struct managed_device *reconciler_find(const struct reconciler *reconciler, const char *name)
{
        return device_of(tree_find(&reconciler->devices, name));
}

struct managed_device *reconciler_find_number(const struct reconciler *reconciler, int number)
{
        const struct device_record *record = device_store_of_number(reconciler->env.config.store, number);

        return record ? reconciler_find(reconciler, record->name) : NULL;
}

struct managed_device *reconciler_first(const struct reconciler *reconciler)
{
        return device_of(reconciler->devices.first);
}

struct managed_device *reconciler_after(const struct managed_device *device)
{
        return device_of(device->id.by_name.next);
}
