/* SPDX-License-Identifier: MIT */
/* The open backend of this worker's device, and the disk that comes of it. */
#pragma once

#include "targets/target.h"
#include "targets/worker/disk/config.h"

enum disk_lock {
        DISK_LOCK_NONE, /* nothing to lock, or not to be locked, or it cannot be */
        DISK_LOCK_WANTED,
        DISK_LOCK_BESIDE_READERS, /* no other process can write; another process has a read lock */
        DISK_LOCK_HELD,
};

struct disk {
        struct target_device device;
        struct disk_params params;
        enum disk_lock lock;
        bool exists; /* the kernel has the disk already */
};

/* Opens the backend. `config` must outlive the disk. store: a descriptor of the store that the disk is on,
 * taken over; -1: none. May block. 0; -errno with problems, or -ENOMEM; then there is nothing to close, and
 * ret->device.store.found says which store was refused, if that was why, and disk_is_cut() answers. */
int disk_open(const struct worker_config *config, int store, struct disk *ret, struct problem_list *problems);
/* Locks what the disk lies in against other servers (backing_lock.h), where that is wanted. Who only reads
 * does not keep a disk that exists from its lock. Never waits. 0: it is locked, or there is nothing to do;
 * -EAGAIN: somebody else has it, and it is still wanted; other -errno: there are no locks on it, and none is
 * wanted any more. */
int disk_lock(struct disk *disk);
/* After -EAGAIN: why, as a problem, and the process that has it, or 0. 0 or -ENOMEM. */
int disk_lock_explain(const struct disk *disk, struct problem_list *problems, pid_t *ret_holder);
/* Makes it serve `size` bytes, if the backing store has them; never less than it did. Queues may be serving.
 * May block for a moment. 0, also when it does already; -errno with problems, or -ENOMEM, and it stays as it
 * is. */
int disk_grow(struct disk *disk, uint64_t size, struct problem_list *problems);
/* Return whether the backing store ended before the disk does when disk_open() or disk_grow() looked, also
 * where they failed. *ret: where it ended. False where that is unknown. */
bool disk_is_cut(const struct disk *disk, uint64_t *ret);
/* No queue may use it any more. Zero-initialised is fine. */
void disk_close(struct disk *disk);
