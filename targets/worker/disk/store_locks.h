/* SPDX-License-Identifier: MIT */
/* The locks on the backing stores of a disk: on what it lies in of each (backing_lock.h). It serves with all of them or not at all. Of
 * a store among the children of a target all is locked that the tree can reach. */
#pragma once

#include "targets/worker/disk/disk.h"

/* Want a lock on each store of an open disk. */
void store_locks_want(struct disk *disk);

/* Lock what the disk lies in against other servers, if that is wanted. A process that only reads does not keep an existing disk from
 * its lock. Never waits. Return 0: all are locked, or there is nothing to do; -EAGAIN: another process has one, and it is still
 * wanted, those that are locked stay so; other -errno: that store has no locks, and none is wanted of it any more. */
int disk_lock(struct disk *disk);
/* Add a problem that explains -EAGAIN. *ret_holder: the process that has the lock, or 0. Return 0 or -ENOMEM. */
int disk_lock_explain(const struct disk *disk, struct problem_list *problems, pid_t *ret_holder);

/* Lock what the disk will lie in with `size` bytes, after its target has measured the stores. What it lies in already stays locked.
 * Return 0; or -errno with problems, or -ENOMEM. */
int store_locks_grow(struct disk *disk, uint64_t size, struct problem_list *problems);
