/* SPDX-License-Identifier: MIT */
/* What happens between GO and the first queue: kept memory is found, and the target starts the device.
 *
 * Not earlier: until the driver lets a worker take over, a thread of the worker before it may still store into kept memory. */
#pragma once

#include "targets/worker/disk/disk.h"

/* Find the kept memory, zero all of it unless all is settled, and have the target start the device. Once, behind GO, on the main
 * thread, before any queue. control: of the region of the device; the fault of a failed flush is latched there if the marks show
 * that what was kept is lost. May block. Return 0; or -errno with problems, or -ENOMEM: do not serve. */
int disk_start(struct disk *disk, struct region_control *control, struct problem_list *problems);
/* Note that every queue has started: from here on the next worker finds the memory as this one leaves it. Once, on any thread,
 * before any queue fetches: nothing is acknowledged on memory that is not settled. */
void disk_started(struct disk *disk);
