/* SPDX-License-Identifier: MIT */
/* The disk that the control helper holds while a command is under way: whether what it has opened is that
 * disk. */
#pragma once

#include <stdbool.h>

enum {
        CTL_HOLD_PATH_SIZE = 32,
        CTL_HOLD_MSEC = 3000, /* how long the open may take: it waits for no I/O unless the partition table is
                                 being read, or another program is opening or closing the disk */
};

/* Format the path of the node of a disk: "/dev/ublkb0". */
void ctl_hold_path(unsigned number, char path[static CTL_HOLD_PATH_SIZE]);
/* Return whether the kernel shows such a disk. One that it does not show cannot be in use. */
bool ctl_hold_has_disk(unsigned number);
/* Return whether `fd` is open on that very disk, whatever its path leads to. */
bool ctl_hold_is_disk(unsigned number, int fd);
