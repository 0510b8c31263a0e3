/* SPDX-License-Identifier: MIT */
/* The disk that has a partition. */
#pragma once

#include <sys/types.h>

/* Find the whole disk of a disk or a partition, by /sys/dev/block. sys: "/sys", or another tree in tests. Never waits.
 * Return 0; -ENOENT: there is no such disk; other -errno. */
int disk_whole(const char *sys, dev_t number, dev_t *ret);
