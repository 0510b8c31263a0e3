/* SPDX-License-Identifier: MIT */
/* Mounts the file system of a disk below a directory that only root may enter, and ends such a mount. In a process of its
 * own: all of it can hang, and a mount has the kernel read what is on the disk. */
#pragma once

#include "ublkd/filesystems/filesystem_hold.h"
#include "ublkd/filesystems/filesystem_wire.h"

#include <stdbool.h>

/* Return 1 if users may write to the store of a disk, and so to the disk past its file system, which the kernel reads as
 * root; 0: they may not, or the path is ""; -errno. */
int filesystem_store_is_open(const char *path);
/* Mount the disk, whose path is `source`, at TOP/POINT: both are made if they are missing. The process gives up what it
 * does not need for that. Return 0, also if it was mounted there; -EEXIST: another file system is; -EPERM: another user
 * may write to TOP; -EUCLEAN: the file system has faults; other -errno. */
int filesystem_mount(int disk, const char *source, const struct filesystem_go *go);
/* End the mount at TOP/POINT, and its copies in containers, and remove that directory. No data of the disk are read. hold:
 * of the disk, begun before the supervisor gave the task; it ends here. Return 0, also if there is none; -EBUSY: a process
 * uses it, or a copy that came meanwhile and is left, or the disk is still claimed, by what no look finds; -EEXIST: a
 * container has a copy, which is to stay; -ETIMEDOUT: a container has hindered the look; -ESTALE: another disk is there
 * meanwhile; other -errno. ret_left: of a
 * failure: the mount has ended, and a copy may be left. */
int filesystem_unmount(struct filesystem_hold *hold, const struct filesystem_go *go, bool *ret_left);
