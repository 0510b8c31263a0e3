/* SPDX-License-Identifier: MIT */
/* Waits for the processes that ublkd has left in its group: the control helper, the path watcher, the processes of
 * apart.h. They end by themselves when ublkd is dead, also when it was killed, but after it. */
#pragma once

#include "ublkd/cgroups/group_place.h"

#include <stdint.h>

enum { GROUP_WAIT_USEC = 2 * 1000 * 1000 }; /* a process that the kernel holds takes longer */

/* Wait until no process but this one and workers is in the group of this process. Return 0; 1: some are left after
 * `patience_usec`; -errno: the group cannot be read. */
int group_wait(const struct group_sources *sources, uint64_t patience_usec);
