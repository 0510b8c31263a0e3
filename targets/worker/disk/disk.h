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
        /* The kept descriptor of each backing store, also of those that the disk does not lie in as it is: files of the device. */
        int witnesses[TARGET_NODES_MAX];
        unsigned witness_count;
};

/* Open the backend. `config` must outlive the disk. store: a descriptor of the store that the disk is on,
 * taken over; -1: none. May block. Return 0; or -errno with problems, or -ENOMEM: then there is nothing to
 * close, ret->device.store.found is the store that was refused, if one was, and disk_is_cut() answers. */
int disk_open(const struct worker_config *config, int store, struct disk *ret, struct problem_list *problems);
/* Lock what the disk lies in against other servers (backing_lock.h), if that is wanted. A process that only
 * reads does not keep an existing disk from its lock. Never waits. Return 0: it is locked, or there is
 * nothing to do; -EAGAIN: another process has it, and it is still wanted; other -errno: the store has no
 * locks, and none is wanted any more. */
int disk_lock(struct disk *disk);
/* Add a problem that explains -EAGAIN. *ret_holder: the process that has the lock, or 0. Return 0 or -ENOMEM.
 */
int disk_lock_explain(const struct disk *disk, struct problem_list *problems, pid_t *ret_holder);
/* Make the disk serve `size` bytes, if the backing store has them; it never shrinks. Queues may be serving.
 * May block for a moment. Return 0, also if it serves them already; on -errno with problems, or -ENOMEM, it
 * stays as it is. */
int disk_grow(struct disk *disk, uint64_t size, struct problem_list *problems);
/* Return whether the backing store ended before the disk does when disk_open() or disk_grow() looked, also
 * where they failed. *ret: where it ended. False where that is unknown. */
bool disk_is_cut(const struct disk *disk, uint64_t *ret);
/* Close the disk. No queue may use it any more. A zero-initialised disk is fine. */
void disk_close(struct disk *disk);
