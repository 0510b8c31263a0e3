/* SPDX-License-Identifier: MIT */
/* Where the bytes of a disk lie: ranges of a file or a disk, and of everything below it that is known. Two
 * disks that write to one range would destroy each other's data. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        BACKING_CLAIMS_MAX = 64, /* of one disk */
        BACKING_KEY_MAX = 255    /* bytes */
};

/* A range of one store. */
struct backing_claim {
        char *key;           /* the same for the same store: "file:8:1:4711", "disk:8:16"; printable */
        uint64_t start, end; /* bytes */
        bool writes;
        /* A mapper above (dm, md) chooses where in the range the bytes lie, and keeps the disks above it
         * apart. Without it, byte N of the disk lies at start + N. */
        bool mapped;
};

/* The first is the store that the spec names. Zero-initialise; empty: nothing to share. */
struct backing_claims {
        struct backing_claim *items;
        size_t count;
};

/* Append a copy of `claim`, unless the list holds the same already. Return 0; -EINVAL: its key is empty, too
 * long or not printable; -E2BIG: the list is full; -ENOMEM. */
int backing_claims_add(struct backing_claims *claims, const struct backing_claim *claim);
/* Append copies of all of `from`. Return as backing_claims_add(); on failure some may have been appended. */
int backing_claims_append(struct backing_claims *claims, const struct backing_claims *from);
/* Return whether both hold the same, in the same order. */
bool backing_claims_equal(const struct backing_claims *one, const struct backing_claims *other);
/* Return whether a claim of each has the same key, their ranges overlap, and at least one of the two writes.
 * Where both are mapped they do not collide: two volumes of one volume group share their disks, and their
 * mapper keeps them apart. */
bool backing_claims_collide(const struct backing_claims *one, const struct backing_claims *other);
/* Return whether the key names a block device, or the file system of a file that lies on one, and its number. */
bool backing_key_device(const char *key, unsigned *ret_major, unsigned *ret_minor);
/* Move the end of each range that is not mapped: the disk has `size` bytes now. */
void backing_claims_resize(struct backing_claims *claims, uint64_t size);
/* Free the items and empty the list. */
void backing_claims_clear(struct backing_claims *claims);

#define _cleanup_claims_ _cleanup_(backing_claims_clear)
