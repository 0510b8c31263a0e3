/* SPDX-License-Identifier: MIT */
/* Closing a descriptor that may take its time. */
#pragma once

/* Close `fd`, and return after 20 ms at most: the last close of a disk writes its cached pages, that of a
 * deleted file frees its blocks, and a network file system asks its server. A thread closes it, and continues
 * if that takes longer; if no thread can be started, this call closes it. fd < 0: nothing. Keeps errno.
 * Return -1: fd = close_away(fd). */
int close_away(int fd);
