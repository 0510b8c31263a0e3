/* SPDX-License-Identifier: MIT */
/* The backing stores of a device: kept by descriptors while its disk exists, recognised by their identities after
 * that. */
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/backing/backing_changed.h"
#include "ublkd/reconcile/backing/kept_store.h"
#include "ublkd/reconcile/parts/device_keys.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/view/device_geometry.h"

#include "ublkd/plan/frozen_params.h"
#include "ublkd/model/device_spec_store.h"

#include <stdio.h>
#include <string.h>

_Static_assert((int)STORE_LIST_MAX == (int)TARGET_STORES_MAX,
        "a list of a message has room for the stores of a tree");

#define STORE_FOREACH(store, backing)                                                                        \
        for (struct kept_store *store = (backing)->stores; store < (backing)->stores + (backing)->count;     \
                store++)

static struct runtime_dir *runtime_dir_of(const struct managed_device *device)
{
        return device->env->config.runtime_dir;
}

/* Return whether the store with that number in the record was read in this boot. */
static bool in_this_boot(
        const struct managed_device *device, const struct device_record *record, unsigned number)
{
        const char *boot;

        (void)device_record_backing(record, number, &boot);
        return strcmp(boot, device->env->boot_id) == 0;
}

enum backing_match device_backing_compare(const struct managed_device *device,
        const struct device_record *record, unsigned number, const struct backing_identity *found)
{
        return backing_compare(
                device_record_backing(record, number, NULL), found, in_this_boot(device, record, number));
}

/* ---- how many ---- */

static void drop_shape(struct device_backing *backing)
{
        if (backing->stores != &backing->single)
                free(backing->stores);
        backing->stores = NULL;
        backing->count = 0;
        backing->is_list = false;
}

/* Return whether there is nothing of a disk, so that the stores may become those of another spec. */
static bool is_empty(const struct device_backing *backing)
{
        STORE_FOREACH(store, backing)
        if (store->held || store->known || store->has_claim)
                return false;
        return !backing->frozen_known;
}

/* Have this number of stores, empty ones. Return 0 or -ENOMEM. */
static int set_shape(struct device_backing *backing, unsigned count, bool is_list)
{
        struct kept_store *stores = is_list ? calloc(count, sizeof(*stores)) : &backing->single;

        if (!stores)
                return -ENOMEM;
        drop_shape(backing);
        backing->single = (struct kept_store){};
        backing->stores = stores;
        backing->count = count;
        backing->is_list = is_list;
        return 0;
}

bool device_backing_fits(const struct device_backing *backing, const struct device_spec *spec)
{
        bool is_list = spec && device_spec_has_list(spec);

        return backing->count == (is_list ? device_spec_stores(spec) : 1) && backing->is_list == is_list;
}

/* Have as many stores as the spec, if there are none of a disk. On ENOMEM the next turn tries again. */
static void follow_spec(struct managed_device *device, const struct device_record *record)
{
        struct device_backing *backing = &device->backing;
        bool is_list = record->spec && device_spec_has_list(record->spec);

        if (!device_backing_fits(backing, record->spec) && is_empty(backing))
                (void)set_shape(backing, is_list ? device_spec_stores(record->spec) : 1, is_list);
}

const struct worker_stores *device_backing_of_worker(const struct managed_device *device)
{
        const struct worker_stores *stores =
                device->process.worker ? worker_proc_stores(device->process.worker) : NULL;

        return stores && stores->count == device->backing.count && stores->is_list == device->backing.is_list
                       ? stores
                       : NULL;
}

/* ---- written down ---- */

static int write_message(
        const struct managed_device *device, enum runtime_text which, const struct worker_msg *msg)
{
        _cleanup_free_ char *text = NULL;
        int r = worker_msg_encode(msg, &text);

        return r < 0 ? r : runtime_dir_write(runtime_dir_of(device), device->id.uid, which, text);
}

/* Return true if the file exists; the caller clears `ret`. */
static bool read_message(const struct managed_device *device, enum runtime_text which,
        enum worker_msg_type type, struct worker_msg *ret)
{
        _cleanup_free_ char *text = NULL;

        if (runtime_dir_read(runtime_dir_of(device), device->id.uid, which, &text) < 0
                || worker_msg_decode(text, strlen(text), ret) < 0)
                return false;
        if (ret->type == type)
                return true;
        worker_msg_clear(ret);
        return false;
}

static int write_backing(const struct managed_device *device)
{
        static char empty[] = "";
        const struct device_backing *backing = &device->backing;
        struct listed_store listed[STORE_LIST_MAX];
        struct worker_msg msg = worker_store_message(&backing->stores[0].at);

        if (!backing->is_list)
                return write_message(device, RUNTIME_BACKING, &msg);
        for (unsigned i = 0; i < backing->count; i++)
                listed[i] = worker_store_listed(&backing->stores[i].at);
        msg = (struct worker_msg){
                .type = WORKER_MSG_BACKING,
                .backing = {.boot = empty, .lasting = empty, .stores = {listed, backing->count}}
        };
        return write_message(device, RUNTIME_BACKING, &msg);
}

static void learn_all(struct managed_device *device, const struct worker_stores *stores)
{
        for (unsigned i = 0; i < stores->count; i++)
                kept_store_learn(device, i, &device->backing.stores[i], &stores->items[i]);
}

static void load_backing(struct managed_device *device)
{
        static const int none[STORE_LIST_MAX] = {[0 ... STORE_LIST_MAX - 1] = -1};
        struct worker_stores stores = {};
        int fds[STORE_LIST_MAX];
        struct worker_msg msg;

        if (!read_message(device, RUNTIME_BACKING, WORKER_MSG_BACKING, &msg))
                return;
        memcpy(fds, none, sizeof(fds));
        if (worker_stores_read(&msg, fds, &stores) >= 0
                && set_shape(&device->backing, stores.count, stores.is_list) >= 0)
                learn_all(device, &stores);
        worker_stores_clear(&stores);
        worker_msg_clear(&msg);
}

static void freeze(struct managed_device *device, const struct disk_params *params)
{
        device->backing.frozen = *params;
        /* The kernel does not know the claims, and device_claim.c keeps them. */
        device->backing.frozen.claims = (struct backing_claims){};
        device->backing.frozen.sharing = (struct problem_list){};
        device->backing.frozen_known = true;
}

static void load_params(struct managed_device *device)
{
        struct worker_msg msg;

        if (!read_message(device, RUNTIME_PARAMS, WORKER_MSG_PARAMS, &msg))
                return;
        freeze(device, &msg.params);
        worker_msg_clear(&msg);
}

static bool is_known(const struct device_backing *backing)
{
        STORE_FOREACH(store, backing)
        if (!store->known)
                return false;
        return backing->count > 0;
}

void device_backing_rewrite(const struct managed_device *device)
{
        if (is_known(&device->backing))
                (void)write_backing(device);
        if (device->backing.frozen_known)
                (void)write_message(device, RUNTIME_PARAMS,
                        &(const struct worker_msg){
                                .type = WORKER_MSG_PARAMS, .params = device->backing.frozen});
}

void device_backing_load(struct managed_device *device, const struct device_record *record)
{
        struct device_backing *backing = &device->backing;

        load_backing(device);
        follow_spec(device, record);
        load_params(device);
        backing->epoch = record->epoch;
        /* Also the descriptor of an older disk that ublkd will remove: hold it until then, and remove it from
         * the service manager, or its lock would keep the next worker from the store for ever. */
        for (unsigned i = 0; i < backing->count; i++)
                kept_store_recall(device, i, &backing->stores[i], &backing->epoch);
}

int device_backing_freeze(struct managed_device *device, const struct disk_params *params)
{
        int r = write_message(device, RUNTIME_PARAMS,
                &(const struct worker_msg){.type = WORKER_MSG_PARAMS, .params = *params});

        if (r < 0) {
                device_note(device, REASON_RUNTIME_DIRECTORY, "%s cannot be written: %s.",
                        runtime_dir_path(runtime_dir_of(device)), strerror(-r));
                return r;
        }
        freeze(device, params);
        return 0;
}

/* ---- held ---- */

bool device_backing_is_held(const struct device_backing *backing)
{
        STORE_FOREACH(store, backing)
        if (store->held)
                return true;
        return false;
}

bool device_backing_holds(const struct device_backing *backing, const struct worker_store *store)
{
        STORE_FOREACH(own, backing)
        if (own->held && own->known && device_keys_same_store(&own->at, store))
                return true;
        return false;
}

bool device_backing_is_served_from(const struct device_backing *backing, const struct worker_stores *stores)
{
        if (!stores || stores->count != backing->count || !is_known(backing))
                return false;
        for (unsigned i = 0; i < stores->count; i++)
                if (!device_keys_same_store(&backing->stores[i].at, &stores->items[i]))
                        return false;
        return true;
}

/* From an adopted worker, take only the store that an earlier ublkd has written down: the worker may be under an attacker's
 * control. */
static bool may_be_taken(const struct managed_device *device, const struct device_record *record,
        unsigned number, const struct worker_store *store)
{
        const struct kept_store *own = &device->backing.stores[number];

        if (store->fd < 0 || !kept_store_is_at(store->fd, store))
                return false;
        if (!worker_proc_adopted(device->process.worker))
                return true;
        if (own->known)
                return device_keys_same_store(store, &own->at);
        return device_backing_compare(device, record, number, &store->identity) != BACKING_OTHER;
}

/* Take the descriptors that a worker has opened, in place of those whose devices were removed. All or none: with some of them the next
 * worker would have stores of two workers. */
static void take_from_worker(struct managed_device *device, const struct device_record *record)
{
        struct device_backing *backing = &device->backing;
        const struct worker_stores *stores = device_backing_of_worker(device);
        bool is_adopted = worker_proc_adopted(device->process.worker);
        uint16_t epoch = worker_proc_epoch(device->process.worker);

        for (unsigned i = 0; stores && i < stores->count; i++)
                if (!may_be_taken(device, record, i, &stores->items[i]))
                        return;
        for (unsigned i = 0; stores && i < stores->count; i++) {
                struct kept_store *own = &backing->stores[i];

                if (is_adopted && own->held)
                        continue;
                /* Else what was written down stays: whether the open is exclusive, and the identity. */
                if (!is_adopted || !own->known)
                        kept_store_learn(device, i, own, &stores->items[i]);
                backing->epoch = epoch;
                kept_store_hold(device, i, own, epoch, worker_proc_take_store(device->process.worker, i));
        }
}

void device_backing_drop(struct managed_device *device)
{
        struct device_backing *backing = &device->backing;

        STORE_FOREACH(store, backing)
        kept_store_close(device, store);
        drop_shape(backing);
        *backing = (struct device_backing){};
}

void device_backing_release(struct managed_device *device)
{
        struct device_backing *backing = &device->backing;

        if (is_empty(backing))
                return;
        for (unsigned i = 0; i < backing->count; i++)
                kept_store_release(device, i, &backing->stores[i], backing->epoch);
        (void)runtime_dir_remove(runtime_dir_of(device), device->id.uid,
                RUNTIME_BACKING); /* a file that stays is replaced later */
        (void)runtime_dir_remove(runtime_dir_of(device), device->id.uid, RUNTIME_PARAMS);
        backing->frozen_known = false;
        backing->frozen = (struct disk_params){};
}

/* Return whether the store stays held for the next disk: the spec is the same, and SET_PARAMS had frozen a
 * disk. */
static bool outlives_disk(const struct managed_device *device, const struct device_record *record)
{
        const struct device_backing *backing = &device->backing;

        return device_backing_is_held(backing) && backing->frozen_known && backing->epoch == record->epoch
               && !record->deleting && device_record_enabled(record);
}

/* What an earlier worker found cannot be accepted any more where its worker has opened the store of the record. */
static void clear_refused(struct managed_device *device, const struct device_record *record)
{
        const struct worker_stores *stores = device_backing_of_worker(device);

        for (unsigned i = 0; stores && i < stores->count; i++)
                if (device_backing_compare(device, record, i, &stores->items[i].identity) != BACKING_OTHER)
                        device->backing.stores[i].refused = (struct backing_identity){};
}

void device_backing_follow(struct managed_device *device, const struct device_record *record)
{
        follow_spec(device, record);
        if (device->view.facts.kernel == KERNEL_ABSENT && device->view.facts.worker == PLAN_WORKER_NONE) {
                if (!outlives_disk(device, record))
                        device_backing_release(device);
                follow_spec(device, record);
                return;
        }
        if (device->process.worker && worker_proc_number(device->process.worker) >= 0)
                take_from_worker(device, record);
        clear_refused(device, record);
        if (device->view.facts.kernel == KERNEL_LIVE && device->view.facts.worker == PLAN_WORKER_SERVING)
                device_backing_retry(device);
}

/* Of a store that is known, `at` has whether it is shared. */
void device_backing_retry(struct managed_device *device)
{
        struct device_backing *backing = &device->backing;

        for (unsigned i = 0; i < backing->count; i++) {
                backing->stores[i].refused = (struct backing_identity){};
                backing->stores[i].shares = false;
        }
        backing->changed = false;
}

/* ---- recognised ---- */

static int refuse_other(struct managed_device *device, const struct device_record *record, unsigned number,
        const struct backing_identity *found)
{
        device->backing.stores[number].refused = *found;
        device->backing.changed = true;
        backing_changed_note(device, record, number, found);
        return -ESTALE;
}

/* What is written down is of the disk. Else the spec counts, for a worker that was started for it. */
bool device_backing_is_miscounted(const struct managed_device *device)
{
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);
        const struct device_backing *backing = &device->backing;

        if (!device->process.worker || !worker_proc_stores(device->process.worker)
                || device_backing_of_worker(device))
                return false;
        return is_known(backing)
               || (record && record->spec && worker_proc_epoch(device->process.worker) == record->epoch
                       && device_backing_fits(backing, record->spec));
}

/* Compare again: a worker of another version may not have compared. */
static int check_identities(struct managed_device *device, const struct device_record *record)
{
        const struct worker_stores *stores = device_backing_of_worker(device);

        if (device_backing_is_miscounted(device)) {
                device_note(device, REASON_WORKER_BROKE_PROTOCOL,
                        "The worker (pid %d) reports another number of backing stores than the disk has.",
                        (int)worker_proc_pid(device->process.worker));
                return -ESTALE;
        }
        /* Without: it uses the descriptors that it got. */
        for (unsigned i = 0; stores && i < stores->count; i++)
                if (device_backing_compare(device, record, i, &stores->items[i].identity) == BACKING_OTHER)
                        return refuse_other(device, record, i, &stores->items[i].identity);
        return 0;
}

/* Return whether the record has this identity. An identity that does not last is valid only in its boot. */
static bool is_stored(const struct managed_device *device, const struct device_record *record,
        unsigned number, const struct backing_identity *identity)
{
        return backing_identity_equal(device_record_backing(record, number, NULL), identity)
               && (in_this_boot(device, record, number) || strcmp(identity->boot, identity->lasting) == 0);
}

/* Empty: nothing is to be stored of it. */
static struct backing_identity identity_to_store(const struct managed_device *device,
        const struct device_record *record, unsigned number, const struct worker_store *store)
{
        return backing_identity_is_empty(&store->identity)
                               || is_stored(device, record, number, &store->identity)
                       ? (struct backing_identity){}
                       : store->identity;
}

static int store_identities(struct managed_device *device, const struct device_record *record)
{
        const struct worker_stores *stores = device_backing_of_worker(device);
        struct device_store *records = device->env->config.store;
        struct backing_identity identities[STORE_LIST_MAX];
        int r = 0;

        for (unsigned i = 0; stores && i < stores->count; i++)
                identities[i] = identity_to_store(device, record, i, &stores->items[i]);
        if (stores && stores->is_list)
                r = device_store_set_listed(
                        records, device->id.name, identities, stores->count, device->env->boot_id);
        else if (stores && !backing_identity_is_empty(&identities[0]))
                r = device_store_set_backing(records, device->id.name, &identities[0], device->env->boot_id);
        if (r < 0)
                device_note(device, REASON_NOT_STORED,
                        "The identity of the backing store cannot be stored: %s.", strerror(-r));
        return r;
}

int device_backing_take(struct managed_device *device, const struct device_record *record)
{
        int r = check_identities(device, record);

        if (r >= 0)
                r = store_identities(device, record);
        if (r < 0 || !device_backing_of_worker(device))
                return r;
        take_from_worker(device, record);
        if (!is_known(&device->backing))
                return 0;
        r = write_backing(device);
        if (r < 0)
                device_note(device, REASON_RUNTIME_DIRECTORY, "%s cannot be written: %s.",
                        runtime_dir_path(runtime_dir_of(device)), strerror(-r));
        return r;
}

int device_backing_check_frozen(struct managed_device *device, const struct disk_params *params)
{
        uint64_t frozen, now;
        const char *field;

        if (!device->backing.frozen_known
                || frozen_params_fit(&device->backing.frozen, params, &field, &frozen, &now))
                return 0;
        device->backing.changed = true;
        device_note(device, REASON_BACKING_CHANGED,
                "The backing store no longer supports what the disk promises to its openers: %s is %llu, and "
                "the disk was created with %llu; restore the store, and ublkd recovers the disk.",
                field, (unsigned long long)now, (unsigned long long)frozen);
        return -ESTALE;
}

int device_backing_check_geometry(
        struct managed_device *device, const struct device_record *record, const struct disk_params *params)
{
        const struct device_geometry *disk = &device->view.geometry;
        int r = device_geometry_check(disk, params);

        if (r == -ESTALE) {
                device->backing.changed = true;
                device_note(device, REASON_BACKING_CHANGED,
                        "The backing store no longer has the size of the disk: it has %llu bytes in blocks "
                        "of %u, and the disk has %llu in blocks of %u; restore the store, and ublkd recovers "
                        "the disk.",
                        (unsigned long long)params->size, params->logical_block_size,
                        (unsigned long long)disk->size, disk->block_size);
        } else if (r < 0)
                device_note(device, REASON_CONTROL_PLANE,
                        "The size of /dev/ublkb%d cannot be read from /sys: %s.", record->number,
                        strerror(-r));
        return r;
}

int device_backing_check(struct managed_device *device, const struct device_record *record)
{
        int r = device_backing_check_frozen(device, worker_proc_params(device->process.worker));

        return r < 0 ? r : device_backing_take(device, record);
}

bool device_backing_is_unnamed(const struct device_backing *backing)
{
        STORE_FOREACH(store, backing)
        if (kept_store_is_unnamed(store))
                return true;
        return false;
}

/* ---- shown ---- */

static int show_list(
        const struct managed_device *device, const struct device_record *record, struct device_status *status)
{
        const struct device_backing *backing = &device->backing;

        status->stores = calloc(backing->count, sizeof(*status->stores));
        if (!status->stores)
                return -ENOMEM;
        status->store_count = backing->count;
        status->backing.kept = true;
        for (unsigned i = 0; i < backing->count; i++) {
                struct store_status *store = &status->stores[i];

                device_spec_store_pointer(record->spec, i, store->pointer);
                store->identity = *device_record_backing(record, i, NULL);
                store->found = backing->stores[i].refused;
                store->kept = backing->stores[i].held;
                status->backing.kept = status->backing.kept && store->kept;
        }
        return 0;
}

int device_backing_show(
        const struct managed_device *device, const struct device_record *record, struct device_status *status)
{
        const struct device_backing *backing = &device->backing;
        const struct backing_identity *identity = device_record_backing(record, 0, NULL);

        status->backing.known = !backing_identity_is_empty(identity) || is_known(backing);
        if (backing->is_list)
                return device_backing_fits(backing, record->spec) ? show_list(device, record, status) : 0;
        status->backing.identity = record->backing;
        status->backing.found = backing->single.refused;
        status->backing.kept = backing->single.held;
        return 0;
}
