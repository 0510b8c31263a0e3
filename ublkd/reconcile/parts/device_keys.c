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
        unsigned number;
};

static struct managed_device *of_pid(const struct tree_node *node)
{
        return TREE_OBJECT(node, struct managed_device, keys.by_pid);
}

static struct store_key *of_place(const struct tree_node *node)
{
        return TREE_OBJECT(node, struct store_key, by_place);
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
        const struct store_key *other = of_place(node);
        int order = compare_places(&wanted->place, &other->place);

        if (order == 0)
                order = strcmp(wanted->name, other->device->id.name);
        if (order == 0 && wanted->number != other->number)
                order = wanted->number < other->number ? -1 : 1;
        return order;
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

static struct place_key place_key_of(const struct store_key *key)
{
        return (struct place_key){key->place, key->device->id.name, key->number};
}

void device_keys_set_store(struct managed_device *device, struct store_key *key, unsigned number,
        const struct worker_store *store)
{
        struct tree *tree = &device->reconciler->index.by_place;
        struct place_key place;

        if (key->has_place) {
                place = place_key_of(key);
                (void)tree_remove(tree, &place);
        }
        key->has_place = store;
        if (!store)
                return;
        key->device = device;
        key->number = number;
        key->place = place_of(store);
        place = place_key_of(key);
        tree_insert(tree, &place, &key->by_place);
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

struct store_key *device_keys_first_on(const struct reconciler *reconciler, const struct worker_store *store)
{
        const struct place_key key = {place_of(store), "", 0};
        struct store_key *found = of_place(tree_from(&reconciler->index.by_place, &key));

        return found && compare_places(&found->place, &key.place) == 0 ? found : NULL;
}

struct store_key *device_keys_next_on(const struct store_key *key)
{
        struct store_key *next = of_place(key->by_place.next);

        return next && compare_places(&next->place, &key->place) == 0 ? next : NULL;
}
