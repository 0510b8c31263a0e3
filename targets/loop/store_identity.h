/* SPDX-License-Identifier: MIT */
/* The identity of a file or a block device (ublkd/backing/backing.h).
 *
 * A file: see ublkd/backing/file_identity.h.
 *
 * A disk: within one boot its sequence number (/sys/block/X/diskseq), which the kernel never gives out twice;
 * over boots the first of these that there is: device-mapper UUID, WWID, serial number, the file below a loop
 * device, array UUID, UUID of the partition. A partition also has its place on the disk. */
#pragma once

#include "ublkd/backing/backing.h"

#include <sys/stat.h>

/* Fill *ret with the identity of the open file `fd` (O_PATH is enough), of which `stat` is; the identity is
 * empty if it is unknown. Opens a file for reading for a moment; may block as long as its file system does.
 */
void store_identify(int fd, const struct stat *stat, struct backing_identity *ret);
