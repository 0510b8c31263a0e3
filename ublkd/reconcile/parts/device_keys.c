/* SPDX-License-Identifier: MIT */
/* The indexes of the devices beside that of their names: a failure among 10,000 devices looks at a few of them. */
#include "ublkd/reconcile/parts/device_keys.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include <string.h>

struct pid_key {
        pid_t pid;
        const char *name;
};

struct place_key {
        struct store_place place;
        const char *name;
};

static struct managed_device *of_pid(const struct tree_node *node)
{
        return TREE_OBJECT(node, struct managed_device, keys.by_pid);
}

static struct managed_device *of_place(const struct tree_node *node)
{
        return TREE_OBJECT(node, struct managed_device, keys.by_place);
}

static int compare_pid(const void *key, const struct tree_node *node)
{
        const struct pid_key *wanted = key;
        const struct managed_device *device = of_pid(node);

        if (wanted->pid != device->keys.pid)
                return wanted->pid < device->keys.pid ? -1 : 1;
        return strcmp(wanted->name, device->id.name);
}

static int compare_places(const struct store_place *one, const struct store_place *other)
{
        if (one->inode != other->inode)
                return one->inode < other->inode ? -1 : 1;
        if (one->major != other->major)
                return one->major < other->major ? -1 : 1;
        if (one->minor != other->minor)
                return one->minor < other->minor ? -1 : 1;
        return (int)one->is_disk - (int)other->is_disk;
}

static int compare_place(const void *key, const struct tree_node *node)
{
        const struct place_key *wanted = key;
        const struct managed_device *device = of_place(node);
        int order = compare_places(&wanted->place, &device->keys.place);

        return order ? order : strcmp(wanted->name, device->id.name);
}

void device_keys_init(struct reconciler *reconciler)
{
        reconciler->index = (struct device_index){
                .by_pid.compare = compare_pid,
                .by_place.compare = compare_place,
        };
}

void device_keys_set_pid(struct managed_device *device, pid_t pid)
{
        struct device_keys *keys = &device->keys;
        struct tree *tree = &device->reconciler->index.by_pid;

        if (keys->pid != 0)
                (void)tree_remove(tree, &(const struct pid_key){keys->pid, device->id.name});
        keys->pid = pid;
        if (pid != 0)
                tree_insert(tree, &(const struct pid_key){pid, device->id.name}, &keys->by_pid);
}

static struct store_place place_of(const struct worker_store *store)
{
        return (struct store_place){
                .major = store->major,
                .minor = store->minor,
                .inode = store->inode,
                .is_disk = store->identity.is_disk,
        };
}

void device_keys_set_store(struct managed_device *device, const struct worker_store *store)
{
        struct device_keys *keys = &device->keys;
        struct tree *tree = &device->reconciler->index.by_place;

        if (keys->has_place)
                (void)tree_remove(tree, &(const struct place_key){keys->place, device->id.name});
        keys->has_place = store;
        if (!store)
                return;
        keys->place = place_of(store);
        tree_insert(tree, &(const struct place_key){keys->place, device->id.name}, &keys->by_place);
}

struct managed_device *device_keys_find_pid(const struct managed_device *self, pid_t pid)
{
        struct managed_device *found =
                of_pid(tree_from(&self->reconciler->index.by_pid, &(const struct pid_key){pid, ""}));

        if (found == self)
                found = of_pid(self->keys.by_pid.next);
        return found && found->keys.pid == pid ? found : NULL;
}

bool device_keys_same_store(const struct worker_store *one, const struct worker_store *other)
{
        const struct store_place left = place_of(one), right = place_of(other);

        return compare_places(&left, &right) == 0;
}

struct managed_device *device_keys_first_on(
        const struct reconciler *reconciler, const struct worker_store *store)
{
        const struct place_key key = {place_of(store), ""};
        struct managed_device *found = of_place(tree_from(&reconciler->index.by_place, &key));

        return found && compare_places(&found->keys.place, &key.place) == 0 ? found : NULL;
}

struct managed_device *device_keys_next_on(const struct managed_device *device)
{
        struct managed_device *next = of_place(device->keys.by_place.next);

        return next && compare_places(&next->keys.place, &device->keys.place) == 0 ? next : NULL;
}
