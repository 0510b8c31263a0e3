/* SPDX-License-Identifier: MIT */
/* The open backend of this worker's device, and the disk that comes of it. */
#pragma once

#include "targets/target.h"
#include "targets/worker/disk/config.h"
#include "targets/worker/disk/disk_range.h"

struct disk {
        struct target_device device;
        struct disk_params params;
        bool is_tree;
        /* Of all its backing stores together: DISK_LOCK_WANTED as long as that of one is; then the weakest that one has; NONE: none
         * has a lock. Each of them is of store_locks.c. */
        enum disk_lock lock;
        struct disk_range ranges[TARGET_NODES_MAX];
        unsigned range_count;
        unsigned contended;          /* which of them another process had locked */
        bool exists;                 /* the kernel has the disk already */
        struct region_kept_map kept; /* of disk_start.c; zeroes: none */
        /* The kept descriptor of each backing store, also of those that the disk does not lie in as it is: files of the device. */
        int witnesses[TARGET_NODES_MAX];
        unsigned witness_count;
};

/* Open the backend. `config` must outlive the disk. store: a descriptor of the store that the disk is on,
 * taken over; -1: none. May block. Return 0; or -errno with problems, or -ENOMEM: then there is nothing to
 * close, ret->device.store.found is the store that was refused, if one was, and disk_is_cut() answers. */
int disk_open(const struct worker_config *config, int store, struct disk *ret, struct problem_list *problems);
/* Make the disk serve `size` bytes, if the backing store has them; it never shrinks. Queues may be serving.
 * May block for a moment. Return 0, also if it serves them already; on -errno with problems, or -ENOMEM, it
 * stays as it is. */
int disk_grow(struct disk *disk, uint64_t size, struct problem_list *problems);
/* Return whether the backing store ended before the disk does when disk_open() or disk_grow() looked, also
 * where they failed. *ret: where it ended. False where that is unknown. */
bool disk_is_cut(const struct disk *disk, uint64_t *ret);
/* Close the disk. No queue may use it any more. A zero-initialised disk is fine. */
void disk_close(struct disk *disk);
