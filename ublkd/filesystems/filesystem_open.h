/* SPDX-License-Identifier: MIT */
/* Opens a disk, and does not wait for it for ever: the kernel opens no disk while it looks for the partitions of it, and for that
 * it waits for the worker. */
#pragma once

#include <stdbool.h>

enum { OPEN_MSEC = 5000 }; /* an open waits no longer than that */

/* Open the file that `node`, a descriptor of O_PATH, leads to, in a child, which is killed at the deadline. Such a child, which
 * ends when the kernel lets it, has none of the caller's descriptors. Return a descriptor; -ETIMEDOUT; other -errno. */
int filesystem_open_in_time(int node, int flags, int msec);
/* Return whether a child of this process is still there. */
bool filesystem_open_lingers(void);
/* Wait for the ends of all children. */
void filesystem_open_wait(void);
