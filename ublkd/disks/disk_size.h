/* SPDX-License-Identifier: MIT */
/* The size of a disk, as the kernel shows it. */
#pragma once

#include <stdint.h>

/* Read size and logical block size of /dev/ublkbN, in bytes. sys: "/sys", or another tree in tests.
 * ret_logical_block_size: NULL if it is known; it is the same as long as there is a disk. Never waits. Return 0 or
 * -errno. */
int disk_size_read(const char *sys, int number, uint64_t *ret_size, uint32_t *ret_logical_block_size);
