/* SPDX-License-Identifier: MIT */
/* What CONFIG says of the backing stores that a worker must open. */
#include "ublkd/reconcile/backing/backing_wish.h"
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/backing/kept_store.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include "ublkd/model/device_spec_store.h"
#include "ublkd/store/device_change.h"
#include "ublkd/store/store_carry.h"

#include <errno.h>
#include <string.h>

static void expect_single(
        const struct managed_device *device, const struct device_record *record, struct worker_msg *config)
{
        const struct backing_identity *expected = &record->backing;

        if (backing_identity_is_empty(expected))
                return;
        config->config.expected_boot = (char *)expected->boot; /* not changed */
        config->config.expected_lasting = (char *)expected->lasting;
        config->config.expected_basis = (int)expected->basis;
        config->config.expected_is_disk = expected->is_disk;
        config->config.expected_in_this_boot = strcmp(record->backing_boot, device->env->boot_id) == 0;
}

/* stores: what is known of those of `spec`. */
static void expect_list(const struct managed_device *device, const struct device_record *record,
        const struct device_spec *spec, const struct record_stores *stores, struct backing_wish *ret,
        struct worker_msg *config)
{
        unsigned count = device_spec_stores(spec);

        for (unsigned i = 0; i < count; i++) {
                const char *path = device_spec_store_path(spec, i);
                const struct record_store *store = path ? record_stores_at(stores, i, path) : NULL;

                ret->listed[i] = (struct listed_store){.user = device_store_user(record, spec)};
                if (!store)
                        continue;
                ret->listed[i].identity = store->identity;
                ret->listed[i].in_this_boot = strcmp(store->boot, device->env->boot_id) == 0;
        }
        config->config.stores = (struct store_list){ret->listed, count};
        config->config.store_user = 0;
}

int backing_wish_of_spec(const struct managed_device *device, const struct device_record *record,
        const struct device_spec *spec, struct backing_wish *ret, struct worker_msg *config)
{
        _cleanup_record_stores_ struct record_stores *stores = NULL;
        int r = store_carry_list(record, spec, &stores); /* as device_store_put() will do it */

        if (r < 0)
                return r;
        for (unsigned i = 0; i < STORE_LIST_MAX; i++)
                ret->fds[i] = -1;
        if (device_spec_has_list(spec)) {
                expect_list(device, record, spec, stores, ret, config);
                for (unsigned i = 0; i < config->config.stores.count; i++)
                        ret->listed[i].is_shared = true; /* the served disk may have the claim */
                return 0;
        }
        ret->next = *record; /* it keeps the identity of the same target */
        if (!device_spec_targets_equal(record->spec, spec))
                store_carry_single(record, spec, &ret->next);
        if (!backing_identity_is_empty(&ret->next.backing))
                expect_single(device, &ret->next, config);
        return 0;
}

static bool was_served_from(const struct managed_device *device, const struct device_record *record,
        unsigned number, const struct kept_store *store)
{
        return store->known
               && device_backing_compare(device, record, number, &store->at.identity) == BACKING_SAME;
}

static bool is_shared(const struct kept_store *store)
{
        return store->shares || (store->known && !store->at.claimed);
}

/* Return whether the descriptor is of another store of the device, by the numbers of the kernel. */
static bool is_at_another(const struct device_backing *backing, unsigned number)
{
        int fd = backing->stores[number].fd;

        for (unsigned i = 0; i < backing->count; i++)
                if (i != number && backing->stores[i].known && kept_store_is_at(fd, &backing->stores[i].at))
                        return true;
        return false;
}

/* A store is found out only by being another one of the list: the numbers of its own may be from before it was away, and an overlay
 * changes those of a file. */
int backing_wish_misplaced(const struct managed_device *device)
{
        const struct device_backing *backing = &device->backing;

        for (unsigned i = 0; i < backing->count; i++) {
                const struct kept_store *store = &backing->stores[i];

                if (store->held && store->known && !kept_store_is_at(store->fd, &store->at)
                        && is_at_another(backing, i))
                        return (int)i;
        }
        return -1;
}

int backing_wish_of_device(const struct managed_device *device, const struct device_record *record,
        struct backing_wish *ret, struct worker_msg *config)
{
        const struct device_backing *backing = &device->backing;
        unsigned next = 0;

        if (!device_backing_fits(backing, record->spec))
                return -ESTALE;
        if (backing_wish_misplaced(device) >= 0)
                return -EBADF;
        for (unsigned i = 0; i < STORE_LIST_MAX; i++)
                ret->fds[i] = -1;
        config->config.exists =
                device->view.facts.kernel == KERNEL_DOWN || device->view.facts.kernel == KERNEL_LIVE;
        if (backing->is_list)
                expect_list(device, record, record->spec, record->stores, ret, config);
        else {
                config->config.expected_served = was_served_from(device, record, 0, backing->stores);
                config->config.shared = is_shared(backing->stores);
                expect_single(device, record, config);
        }
        for (unsigned i = 0; i < backing->count; i++) {
                const struct kept_store *store = &backing->stores[i];

                ret->listed[i].has_fd = store->held;
                ret->listed[i].was_served = was_served_from(device, record, i, store);
                ret->listed[i].is_shared = is_shared(store);
                if (store->held)
                        ret->fds[next++] = store->fd;
        }
        return 0;
}
