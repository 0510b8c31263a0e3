/* SPDX-License-Identifier: MIT */
/* Whether anything has a disk for itself: the kernel has each mount of a file system, and each copy of one, claim its disk. */
#pragma once

#include <sys/types.h>

enum filesystem_claim {
        FILESYSTEM_CLAIM_FREE, /* no file system has the disk, and no other program that wants it for itself */
        FILESYSTEM_CLAIM_TAKEN,  /* one of them has it */
        FILESYSTEM_CLAIM_UNSEEN, /* no node leads to the disk, or it cannot be opened: it may have gone */
};

/* Return the claim of a disk. A number that is that of no disk, as a file system without one has, is free. node: the path of
 * the disk, or "": then, and if another disk has that path, it is looked for by its number, as udev names it. The data of the
 * disk are not read; the kernel may wait for it. */
enum filesystem_claim filesystem_claim_find(dev_t disk, const char *node);
