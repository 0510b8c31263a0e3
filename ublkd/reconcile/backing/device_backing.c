/* SPDX-License-Identifier: MIT */
/* The backing store of a device: kept by a descriptor while its disk exists, recognised by its identity after
 * that. */
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/parts/device_keys.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/view/device_geometry.h"

#include "ublkd/offload/close_away.h"
#include "ublkd/runtime/fd_store.h"
#include "ublkd/plan/frozen_params.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* The files of a disk beside its region. Each holds one message of the worker (proto/worker_msg.h). */

static struct runtime_dir *runtime_dir_of(const struct managed_device *device)
{
        return device->env->config.runtime_dir;
}

static struct fd_store *fd_store_of(const struct managed_device *device)
{
        return device->env->config.fd_store;
}

static bool in_this_boot(const struct managed_device *device, const struct device_record *record)
{
        return strcmp(record->backing_boot, device->env->boot_id) == 0;
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
        const struct worker_msg msg = worker_store_message(&device->backing.at);

        return write_message(device, RUNTIME_BACKING, &msg);
}

static void load_backing(struct managed_device *device)
{
        struct worker_msg msg;

        if (!read_message(device, RUNTIME_BACKING, WORKER_MSG_BACKING, &msg))
                return;
        worker_store_read(&msg, -1, &device->backing.at);
        device->backing.known = true;
        device_keys_set_store(device, &device->backing.at);
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

void device_backing_rewrite(const struct managed_device *device)
{
        if (device->backing.known)
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
        load_params(device);
        backing->epoch = record->epoch;
        /* Also the descriptor of an older disk that ublkd will remove: hold it until then, and remove it from
         * the service manager, or its lock would keep the next worker from the store for ever. */
        backing->fd = fd_store_take(fd_store_of(device), record->uid, &backing->epoch);
        backing->held = backing->fd >= 0;
        backing->claim = fd_store_take_claim(fd_store_of(device), record->uid);
        backing->has_claim = backing->claim >= 0;
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

/* Return whether `fd` is the store in `at`. Reads what the kernel has in memory, so it waits for no
 * server. */
static bool is_at(int fd, const struct worker_store *at)
{
        struct statx info;
        int r = statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &info);

        if (r < 0)
                return false;
        if (S_ISBLK(info.stx_mode))
                return at->inode == 0 && info.stx_rdev_major == at->major && info.stx_rdev_minor == at->minor;
        return S_ISREG(info.stx_mode) && info.stx_ino == at->inode && info.stx_dev_major == at->major
               && info.stx_dev_minor == at->minor;
}

bool device_backing_holds(const struct device_backing *backing, const struct worker_store *store)
{
        return backing->held && backing->known && device_keys_same_store(&backing->at, store);
}

bool device_backing_is_served_from(const struct device_backing *backing, const struct worker_store *store)
{
        return store && backing->known && device_keys_same_store(&backing->at, store);
}

static void hold(struct managed_device *device, int fd)
{
        struct device_backing *backing = &device->backing;

        backing->fd = fd;
        backing->held = true;
        backing->epoch = worker_proc_epoch(device->process.worker);
        fd_store_keep(fd_store_of(device), device->id.uid, backing->epoch, fd);
}

static void learn_store(struct managed_device *device, const struct worker_store *store)
{
        device->backing.at = *store;
        device->backing.at.fd = -1;
        device->backing.known = true;
        device_keys_set_store(device, store);
}

/* Take the descriptor that a worker has opened, in place of one whose device was removed. From an adopted
 * worker, take only the store that an earlier ublkd has written down: the worker may be under an attacker's
 * control. */
static void take_from_worker(struct managed_device *device)
{
        struct device_backing *backing = &device->backing;
        const struct worker_store *store = worker_proc_store(device->process.worker);
        bool is_written = worker_proc_adopted(device->process.worker) && backing->known;
        int fd;

        if (!store || store->fd < 0)
                return;
        if (worker_proc_adopted(device->process.worker)
                && (backing->held || (is_written && !device_keys_same_store(store, &backing->at))))
                return;
        fd = worker_proc_take_store(device->process.worker);
        if (!is_at(fd, store)) {
                close_away(fd);
                return;
        }
        if (backing->held)
                backing->fd = close_away(backing->fd);
        if (!is_written) /* else what was written down stays: whether the open is exclusive, and the identity */
                learn_store(device, store);
        hold(device, fd);
}

static void close_claim(struct device_backing *backing)
{
        if (backing->has_claim)
                backing->claim = close_away(backing->claim);
        backing->has_claim = false;
}

void device_backing_drop(struct managed_device *device)
{
        struct device_backing *backing = &device->backing;

        if (backing->held)
                backing->fd = close_away(backing->fd);
        close_claim(backing);
        device_keys_set_store(device, NULL);
        *backing = (struct device_backing){};
}

/* Return another device that uses a part of the same block device and relies on the claim of this one. */
static struct managed_device *find_sharer(const struct managed_device *device)
{
        DEVICE_ON_STORE_FOREACH (other, device->reconciler, &device->backing.at)
                if (other != device && !other->backing.at.claimed && !other->backing.has_claim)
                        return other;
        return NULL;
}

/* Pass the exclusive open to a device that still needs it, without the lock on the bytes of this one. */
static void hand_claim_on(struct managed_device *device)
{
        struct device_backing *backing = &device->backing;
        struct managed_device *heir = find_sharer(device);
        struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

        if (!heir)
                return;
        if (backing->at.claimed && backing->held) {
                (void)fcntl(backing->fd, F_OFD_SETLK, &all);
                heir->backing.claim = TAKE_FD(backing->fd);
                backing->held = false;
        } else if (backing->has_claim) {
                heir->backing.claim = TAKE_FD(backing->claim);
                backing->has_claim = false;
        } else
                return;
        heir->backing.has_claim = true;
        fd_store_keep_claim(fd_store_of(heir), heir->id.uid, heir->backing.claim);
}

void device_backing_release(struct managed_device *device)
{
        struct device_backing *backing = &device->backing;
        struct backing_identity refused = backing->refused;
        bool shares = backing->shares, changed = backing->changed;

        if (!backing->held && !backing->known && !backing->frozen_known && !backing->has_claim)
                return;
        /* First, because the service manager does not keep one open file under two names. */
        if (backing->has_claim)
                fd_store_drop_claim(fd_store_of(device), device->id.uid);
        fd_store_drop(fd_store_of(device), device->id.uid, backing->epoch);
        if (backing->known && backing->at.identity.is_disk)
                hand_claim_on(device);
        (void)runtime_dir_remove(runtime_dir_of(device), device->id.uid,
                RUNTIME_BACKING); /* a file that stays is replaced later */
        (void)runtime_dir_remove(runtime_dir_of(device), device->id.uid, RUNTIME_PARAMS);
        device_backing_drop(device);
        backing->refused = refused;
        backing->shares = shares;
        backing->changed = changed;
}

/* Return whether the store stays held for the next disk: the spec is the same, and SET_PARAMS had frozen a
 * disk. */
static bool outlives_disk(const struct managed_device *device, const struct device_record *record)
{
        const struct device_backing *backing = &device->backing;

        return backing->held && backing->frozen_known && backing->epoch == record->epoch && !record->deleting
               && device_record_enabled(record);
}

/* Return whether its worker has opened the store of the record. */
static bool has_right_store(const struct managed_device *device, const struct device_record *record)
{
        const struct worker_store *store =
                device->process.worker ? worker_proc_store(device->process.worker) : NULL;

        return store
               && backing_compare(&record->backing, &store->identity, in_this_boot(device, record))
                          != BACKING_OTHER;
}

void device_backing_follow(struct managed_device *device, const struct device_record *record)
{
        if (device->view.facts.kernel == KERNEL_ABSENT && device->view.facts.worker == PLAN_WORKER_NONE) {
                if (!outlives_disk(device, record))
                        device_backing_release(device);
                return;
        }
        if (device->process.worker && worker_proc_number(device->process.worker) >= 0)
                take_from_worker(device);
        if (has_right_store(device, record)) /* what an earlier worker found cannot be accepted any more */
                device->backing.refused = (struct backing_identity){};
        if (device->view.facts.kernel == KERNEL_LIVE && device->view.facts.worker == PLAN_WORKER_SERVING)
                device_backing_retry(device);
}

void device_backing_retry(struct managed_device *device)
{
        device->backing.refused = (struct backing_identity){};
        device->backing.changed = false;
}

/* ---- recognised ---- */

static int refuse_other(struct managed_device *device, const struct device_record *record,
        const struct backing_identity *found)
{
        device->backing.refused = *found;
        device->backing.changed = true;
        device_note(device, REASON_BACKING_CHANGED,
                "The store at the path is %s (%s), but the disk was created on %s (%s). Put that store back, "
                "and ublkd recovers the disk; or unmount the disk, and set the path in the spec to where "
                "that store is. To give up that store and continue with the store at the path, unmount the "
                "disk first, then: ublkctl recover %s --accept-backing '%s' (in the API: accept-backing).",
                backing_identity_text(found), backing_basis_to_string(found->basis),
                backing_identity_text(&record->backing), backing_basis_to_string(record->backing.basis),
                record->name, backing_identity_text(found));
        return -ESTALE;
}

/* Compare again: a worker of another version may not have compared. */
static int check_identity(struct managed_device *device, const struct device_record *record)
{
        const struct worker_store *store = worker_proc_store(device->process.worker);

        if (!store) /* it uses the descriptor that it got */
                return 0;
        return backing_compare(&record->backing, &store->identity, in_this_boot(device, record))
                               == BACKING_OTHER
                       ? refuse_other(device, record, &store->identity)
                       : 0;
}

/* Return whether the record has this identity. An identity that does not last is valid only in its boot. */
static bool is_stored(const struct managed_device *device, const struct device_record *record,
        const struct backing_identity *identity)
{
        return backing_identity_equal(&record->backing, identity)
               && (in_this_boot(device, record) || strcmp(identity->boot, identity->lasting) == 0);
}

static int store_identity(struct managed_device *device, const struct device_record *record)
{
        const struct worker_store *store = worker_proc_store(device->process.worker);
        int r;

        if (!store || backing_identity_is_empty(&store->identity)
                || is_stored(device, record, &store->identity))
                return 0;
        r = device_store_set_backing(
                device->env->config.store, device->id.name, &store->identity, device->env->boot_id);
        if (r < 0)
                device_note(device, REASON_NOT_STORED,
                        "The identity of the backing store cannot be stored: %s.", strerror(-r));
        return r;
}

int device_backing_take(struct managed_device *device, const struct device_record *record)
{
        int r = check_identity(device, record);

        if (r >= 0)
                r = store_identity(device, record);
        if (r < 0 || !worker_proc_store(device->process.worker))
                return r;
        take_from_worker(device);
        if (!device->backing.known)
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

void device_backing_expect_same(
        const struct managed_device *device, const struct device_record *record, struct worker_msg *config)
{
        const struct backing_identity *expected = &record->backing;

        if (backing_identity_is_empty(expected))
                return;
        config->config.expected_boot = (char *)expected->boot; /* not changed */
        config->config.expected_lasting = (char *)expected->lasting;
        config->config.expected_basis = (int)expected->basis;
        config->config.expected_is_disk = expected->is_disk;
        config->config.expected_in_this_boot = in_this_boot(device, record);
}

int device_backing_expect(
        const struct managed_device *device, const struct device_record *record, struct worker_msg *config)
{
        const struct device_backing *backing = &device->backing;

        config->config.exists =
                device->view.facts.kernel == KERNEL_DOWN || device->view.facts.kernel == KERNEL_LIVE;
        config->config.expected_served =
                backing->known
                && backing_compare(&record->backing, &backing->at.identity, in_this_boot(device, record))
                           == BACKING_SAME;
        config->config.shared = backing->shares || (backing->known && !backing->at.claimed);
        device_backing_expect_same(device, record, config);
        return backing->held ? backing->fd : -1;
}

/* Return whether another device of this ublkd has claimed the block device: this one can use another range of
 * it (device_claim.c). */
static bool learn_share(struct managed_device *device, const struct worker_store *store)
{
        if (device->backing.shares || !store->identity.is_disk)
                return false;
        DEVICE_ON_STORE_FOREACH (sharer, device->reconciler, store) {
                const struct device_backing *other = &sharer->backing;

                if (sharer == device)
                        continue;
                device->backing.shares = other->at.claimed || other->has_claim;
                if (device->backing.shares)
                        return true;
        }
        return false;
}

bool device_backing_refused(struct managed_device *device)
{
        const struct problem_list *problems = worker_proc_problems(device->process.worker);
        const struct worker_store *store = worker_proc_store(device->process.worker);

        if (problems->count == 0 || !store || store->fd >= 0)
                return false;
        if (problems->items[0].error == EBUSY && learn_share(device, store))
                return true;
        device->backing.changed = problems->items[0].error == ESTALE;
        if (device->backing.changed)
                device->backing.refused = store->identity;
        return false;
}

/* Read what the kernel has in memory: that does not wait for a server. */
bool device_backing_is_unnamed(const struct device_backing *backing)
{
        struct statx info;
        int r = backing->held ? statx(backing->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
                                        STATX_TYPE | STATX_NLINK, &info)
                              : -1;

        return r == 0 && S_ISREG(info.stx_mode) && (info.stx_mask & STATX_NLINK) && info.stx_nlink == 0;
}

void device_backing_show(
        const struct managed_device *device, const struct device_record *record, struct device_status *status)
{
        status->backing.known = !backing_identity_is_empty(&record->backing) || device->backing.known;
        status->backing.identity = record->backing;
        status->backing.found = device->backing.refused;
        status->backing.kept = device->backing.held;
}
