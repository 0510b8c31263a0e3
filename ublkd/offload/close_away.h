/* SPDX-License-Identifier: MIT */
/* Closing a descriptor that may take its time. */
#pragma once

/* Closes `fd`, and returns after 20 ms at most: the last close of a disk writes its cached pages, that of a
 * deleted file frees its blocks, and a network file system asks its server. A thread of its own does it, and
 * goes on where it takes longer; where none can be started it is closed here. fd < 0: nothing. Returns -1: fd
 * = close_away(fd). Keeps errno. */
int close_away(int fd);
