/* SPDX-License-Identifier: MIT */
/* What is on a disk, as far as a few reads show it: zeroes, or a file system of ours. It parses nothing: it compares
 * bytes at fixed places. */
#pragma once

#include "ublkd/filesystems/filesystem_wire.h"

/* Look at the disk. Every signature that libblkid knows is in the first or the last 4 MiB; these are read in whole, and a
 * block in each 256th part of the rest. A disk with one byte there that is not zero is not blank.
 *
 * Return FILESYSTEM_SEES_BLANK, _IT, _OTHER; or -errno. */
int filesystem_sight(int disk, enum filesystem_kind kind, const char *uuid);

/* Return 1: the disk has the magic number of a file system that ublkd can make, with whatever UUID; 0: it has not; -errno. */
int filesystem_is_there(int disk);

/* Of a disk with a file system of ours: return 1 if no client can have used it: mkfs.xfs has not ended, or ext4 was never
 * mounted; 0: one may have; -errno. */
int filesystem_is_unused(int disk, enum filesystem_kind kind);
