/* SPDX-License-Identifier: MIT */
/* One backing store of a device, as the supervisor keeps it while the disk exists. */
#include "ublkd/reconcile/backing/kept_store.h"
#include "ublkd/reconcile/parts/device_keys.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include "ublkd/offload/close_away.h"
#include "ublkd/runtime/fd_store.h"

#include <fcntl.h>
#include <sys/stat.h>

static struct fd_store *fd_store_of(const struct managed_device *device)
{
        return device->env->config.fd_store;
}

bool kept_store_is_at(int fd, const struct worker_store *at)
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

void kept_store_learn(struct managed_device *device, unsigned number, struct kept_store *store,
        const struct worker_store *at)
{
        store->at = *at;
        store->at.fd = -1;
        store->known = true;
        device_keys_set_store(device, &store->key, number, at);
}

void kept_store_hold(
        struct managed_device *device, unsigned number, struct kept_store *store, uint16_t epoch, int fd)
{
        if (store->held)
                close_away(store->fd);
        store->fd = fd;
        store->held = true;
        fd_store_keep(fd_store_of(device), device->id.uid, epoch, number, fd);
}

void kept_store_recall(
        struct managed_device *device, unsigned number, struct kept_store *store, uint16_t *epoch)
{
        store->fd = number == 0 ? fd_store_take(fd_store_of(device), device->id.uid, epoch)
                                : fd_store_take_listed(fd_store_of(device), device->id.uid, *epoch, number);
        store->held = store->fd >= 0;
        store->claim = fd_store_take_claim(fd_store_of(device), device->id.uid, number);
        store->has_claim = store->claim >= 0;
}

void kept_store_close(struct managed_device *device, struct kept_store *store)
{
        if (store->held)
                close_away(store->fd);
        if (store->has_claim)
                close_away(store->claim);
        device_keys_set_store(device, &store->key, 0, NULL);
        *store = (struct kept_store){};
}

static struct kept_store *store_of(const struct store_key *key)
{
        return &key->device->backing.stores[key->number];
}

/* Return the key of another device that uses a part of the same block device and relies on the claim of this one. */
static struct store_key *find_sharer(const struct managed_device *device, const struct kept_store *store)
{
        DEVICE_ON_STORE_FOREACH (key, device->reconciler, &store->at) {
                const struct kept_store *other = store_of(key);

                if (key->device != device && !other->at.claimed && !other->has_claim)
                        return key;
        }
        return NULL;
}

/* Pass the exclusive open to a device that still needs it, without the lock on the bytes of this one. */
static void hand_claim_on(struct managed_device *device, struct kept_store *store)
{
        const struct store_key *heir = find_sharer(device, store);
        struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
        struct kept_store *next;

        if (!heir)
                return;
        next = store_of(heir);
        if (store->at.claimed && store->held) {
                (void)fcntl(store->fd, F_OFD_SETLK, &all);
                next->claim = TAKE_FD(store->fd);
                store->held = false;
        } else if (store->has_claim) {
                next->claim = TAKE_FD(store->claim);
                store->has_claim = false;
        } else
                return;
        next->has_claim = true;
        fd_store_keep_claim(fd_store_of(device), heir->device->id.uid, heir->number, next->claim);
}

void kept_store_release(
        struct managed_device *device, unsigned number, struct kept_store *store, uint16_t epoch)
{
        struct backing_identity refused = store->refused;

        /* First, because the service manager does not keep one open file under two names. */
        if (store->has_claim)
                fd_store_drop_claim(fd_store_of(device), device->id.uid, number);
        fd_store_drop(fd_store_of(device), device->id.uid, epoch, number);
        if (store->known && store->at.identity.is_disk)
                hand_claim_on(device, store);
        kept_store_close(device, store);
        store->refused = refused; /* the next worker tries the exclusive open again */
}

/* Read what the kernel has in memory: that does not wait for a server. */
bool kept_store_is_unnamed(const struct kept_store *store)
{
        struct statx info;
        int r = store->held ? statx(store->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
                                      STATX_TYPE | STATX_NLINK, &info)
                            : -1;

        return r == 0 && S_ISREG(info.stx_mode) && (info.stx_mask & STATX_NLINK) && info.stx_nlink == 0;
}
