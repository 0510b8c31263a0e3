/* SPDX-License-Identifier: MIT */
/* How many requests of a disk have ended, as the kernel counts them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct disk_stat {
        uint64_t ended;     /* reads, writes, discards and flushes, of any result */
        uint64_t in_flight; /* begun and not ended; flushes are not counted here */
};

/* Return whether the kernel counts the requests of the disk: its iostats are switched on. Never waits. */
bool disk_stat_is_kept(const char *sys, int number);

/* Read /sys/block/ublkbN/stat (Documentation/block/stat.rst of the kernel). sys: "/sys", or another tree in tests.
 * Never waits. Return 0; -EBADMSG: it has fewer numbers than the kernel writes (from Linux 5.5 on); other -errno. With
 * the disk's iostats switched off all numbers stand still. */
int disk_stat_read(const char *sys, int number, struct disk_stat *ret);
