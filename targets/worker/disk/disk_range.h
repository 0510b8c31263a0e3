/* SPDX-License-Identifier: MIT */
/* What a disk lies in of one file, and whether that is locked. */
#pragma once

#include "targets/worker/disk/backing_lock.h"

enum disk_lock {
        DISK_LOCK_NONE, /* nothing to lock, or not to be locked, or it cannot be */
        DISK_LOCK_WANTED,
        DISK_LOCK_BESIDE_READERS, /* no other process can write; another process has a read lock */
        DISK_LOCK_HELD,
};

/* What the disk lies in of one file. */
struct disk_range {
        struct backing_range range;
        enum disk_lock lock;
        unsigned node; /* of the tree, where there is one */
};
