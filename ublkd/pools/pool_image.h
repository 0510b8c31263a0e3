/* SPDX-License-Identifier: MIT */
/* Images of pools: regular files that ublkd makes, grows and deletes.
 *
 * A pool is a directory that only root may write, so that the files in it are what ublkd has made. All work is relative
 * to its descriptor. A death at any point leaves no image, a whole image, or an image that is larger than it was.
 *
 * An image carries the size that ublkd has given it (an extended attribute, where the file system has those): so a file
 * that was cut off is not grown, which would make zeroes of what it has lost.
 *
 * All functions may block for as long as the file system does. On failure they write one sentence, or two: what
 * failed, why, and what to do. */
#pragma once

#include "ublkd/backing/backing.h"

#include <stdint.h>

enum { POOL_SENTENCE_MAX = 6144 /* a path and some more */ };

/* Which file it is. */
struct pool_image {
        const char *path;                  /* absolute */
        const struct backing_identity *is; /* of the disk's store; empty: there was no disk yet */
        bool same_boot;                    /* `is` was read in this boot */
};

/* Make the image with `size` bytes, all zero and sparse. An image that is there already is that of an earlier try: it is
 * grown if needed, and never made smaller. Only for a device that had no disk yet. Return 1: made; 0: it was there;
 * -ENOSPC, -EDQUOT: no room; other -errno. */
int pool_image_make(const struct pool_image *image, uint64_t size, char sentence[static POOL_SENTENCE_MAX]);
/* Grow the image to `size` bytes, if it is smaller. least: the bytes that it has, unless it was cut off; 0: as many as
 * ublkd gave it last. Return 0; -ENOENT: it is not there; -ESTALE: another file is there; -ENODATA: it was cut off, or
 * its size is not known; -ENOSPC, -EDQUOT, other -errno. */
int pool_image_grow(const struct pool_image *image, uint64_t least, uint64_t size,
        char sentence[static POOL_SENTENCE_MAX]);
/* Delete the image. Return 1: deleted; 0: it was not there; -ESTALE: another file is there; other -errno. */
int pool_image_remove(const struct pool_image *image, char sentence[static POOL_SENTENCE_MAX]);
