/* SPDX-License-Identifier: MIT */
/* A request as the disk of a fault target performs it, after the rules: in its child, with or without a volatile cache before
 * that. */
#pragma once

#include "targets/fault/fault_cache.h"
#include "targets/target.h"
#include "targets/target_action.h"
#include "targets/target_locks.h"

/* Zero-initialise. */
struct fault_disk {
        bool caches;
        struct fault_cache cache;
        struct co_mutex mutex; /* of the cache */
        char *block;      /* one, on its way to the child: no operation of the ring may touch kept memory */
        char *own_memory; /* where there is no kept memory, as in some tests */
};

/* Begin, on the thread of the queue. block_size: each request begins and ends at a multiple of it. Return 0,
 * -ENOMEM, or -ENODATA where the kept memory of the device is damaged. */
int fault_disk_begin(
        struct fault_disk *disk, bool caches, const struct target_device *device, uint32_t block_size);
void fault_disk_end(struct fault_disk *disk);
/* Read what the child has, past the cache: scan() of the fault target. Suspends. */
int fault_disk_scan(struct target_action *action, struct target_queue *queue, uint64_t offset,
        uint32_t length, void *memory);
/* Perform a request of the fault target. Suspends. Return what its callback answers. */
int fault_disk_perform(struct fault_disk *disk, struct target_io *io);
/* Let the power fail: a part of the blocks in the cache reaches the child, by a random number. The caller holds disk->mutex, and ends
 * the process afterwards, also on failure. io: whose queue and tag it has. action: one that reports what is lost, as ranges of the
 * fault target; NULL: none does. Suspends, but not after its end. Return 0 or -errno; what has begun goes on with the next request,
 * of the next worker. */
int fault_disk_cut(
        struct fault_disk *disk, struct target_io *io, uint64_t random, struct target_action *action);
