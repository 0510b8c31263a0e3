/* SPDX-License-Identifier: MIT */
/* What the supervisor reads and writes of struct region_space. */
#pragma once

#include "ublkd/proto/device_region.h"

/* Read what the region has of the room; full_since is at most 2^53, whatever a worker has written. Return 0; -errno as
 * device_region_read_header(). */
int region_space_read(int fd, struct region_space *ret);
/* Read the request that found no room first. Return 0; -errno as above; -ENODATA also if it is of another episode than
 * the one that began at full_since, or not known. */
int region_space_read_missed(int fd, uint64_t full_since, struct region_missed *ret);
/* Set what a write does that finds no room. Return 0 or -errno. */
int region_space_set_on_full(int fd, enum region_on_full on_full);
/* Note that there was an event of that full_since; 0: of its end. waits: it was that writes wait. Return 0 or -errno. */
int region_space_mark_reported(int fd, uint64_t full_since, bool waits);
