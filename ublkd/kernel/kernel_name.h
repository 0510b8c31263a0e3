/* SPDX-License-Identifier: MIT */
/* Names that the kernel gives to block devices in the order in which it finds them. Pure. */
#pragma once

#include <stdbool.h>

/* Return whether `path` (absolute, as path_make_absolute() makes it) names a block device by such a name, as
 * /dev/sdb1, /dev/dm-0 and /dev/block/8:16 do: after the next boot, or when a drive was pulled and plugged in
 * again, it may be another disk. Not /dev/ublkbN, whose numbers ublkd keeps, nor links such as those in
 * /dev/disk. */
bool kernel_name_may_change(const char *path);
