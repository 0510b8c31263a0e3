/* SPDX-License-Identifier: MIT */
/* The identity of a regular file (backing.h): the handle that its file system gives it (name_to_handle_at(2)), which has
 * the inode's generation, so that a file which gets the inode number of a deleted one is another; together with the UUID
 * of the file system (FS_IOC_GETFSUUID, Linux 6.9). Without the UUID the token holds for one boot. File systems whose
 * handles change while a file stays the same (FUSE, overlay) are identified by inode number and time of birth, for one
 * boot. */
#pragma once

#include "ublkd/backing/backing.h"

#include <sys/stat.h>

/* Fill *ret with the identity of the open file `fd` (O_PATH is enough), of which `stat` is; the identity is empty if it is
 * unknown. Opens the file for reading for a moment; may block as long as its file system does. */
void file_identify(int fd, const struct stat *stat, struct backing_identity *ret);
