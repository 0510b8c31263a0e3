/* SPDX-License-Identifier: MIT */
/* A backing store that a worker has refused to serve. */
#include "ublkd/reconcile/backing/store_refusal.h"
#include "ublkd/reconcile/backing/backing_changed.h"
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/parts/device_keys.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/model/device_spec_store.h"

#include <errno.h>
#include <string.h>

/* Return whether another target of the worker's own tree has claimed the block device. */
static bool is_claimed_beside(const struct worker_stores *stores, unsigned number)
{
        for (unsigned i = 0; i < stores->count; i++)
                if (i != number && stores->items[i].claimed
                        && device_keys_same_store(&stores->items[i], &stores->items[number]))
                        return true;
        return false;
}

/* Return whether another device of this ublkd, or another target of this one, has claimed the block device: this one can use another
 * range of it (device_claim.c, targets/worker/disk/stack.c). */
static bool learn_share(struct managed_device *device, const struct worker_stores *stores, unsigned number)
{
        const struct worker_store *store = &stores->items[number];
        struct kept_store *own = &device->backing.stores[number];

        if (own->shares || !store->identity.is_disk)
                return false;
        own->shares = is_claimed_beside(stores, number);
        DEVICE_ON_STORE_FOREACH (key, device->reconciler, store) {
                const struct kept_store *other = &key->device->backing.stores[key->number];

                if (key->device != device && (other->at.claimed || other->has_claim))
                        own->shares = true;
        }
        return own->shares;
}

/* Return the number of the store that the worker's first problem is about; -1: unknown, or about none. */
static int problem_store(const struct managed_device *device)
{
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);
        const struct problem_list *problems = worker_proc_problems(device->process.worker);
        const struct worker_stores *stores = device_backing_of_worker(device);
        char pointer[TARGET_POINTER_SIZE];

        if (problems->count == 0 || !stores)
                return -1;
        if (!stores->is_list)
                return 0;
        for (unsigned i = 0; record && record->spec && i < stores->count; i++) {
                device_spec_store_pointer(record->spec, i, pointer);
                if (pointer_rest(problems->items[0].pointer, pointer))
                        return (int)i;
        }
        return -1;
}

const struct worker_store *store_refusal_place(const struct managed_device *device)
{
        int number = problem_store(device);

        return number < 0 ? NULL : &device_backing_of_worker(device)->items[number];
}

/* A worker that has served may be under an attacker's control: its word about a store is not one about the path. */
bool store_refusal_take(struct managed_device *device, bool served)
{
        const struct problem_list *problems = worker_proc_problems(device->process.worker);
        const struct worker_stores *stores = device_backing_of_worker(device);
        int number = problem_store(device);

        if (served || number < 0 || stores->items[number].fd >= 0)
                return false;
        if (problems->items[0].error == EBUSY && learn_share(device, stores, (unsigned)number))
                return true;
        device->backing.changed = problems->items[0].error == ESTALE;
        if (device->backing.changed)
                device->backing.stores[number].refused = stores->items[number].identity;
        return false;
}

bool store_refusal_explain(struct managed_device *device, const struct device_record *record)
{
        const struct problem_list *problems = worker_proc_problems(device->process.worker);
        const struct worker_stores *stores = device_backing_of_worker(device);
        int number = problem_store(device);

        if (number < 0 || !stores->is_list || problems->items[0].error != ESTALE
                || backing_identity_is_empty(&stores->items[number].identity)
                || device_backing_compare(device, record, (unsigned)number, &stores->items[number].identity)
                           != BACKING_OTHER)
                return false;
        backing_changed_note(device, record, (unsigned)number, &stores->items[number].identity);
        return true;
}
