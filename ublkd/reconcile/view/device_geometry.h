/* SPDX-License-Identifier: MIT */
/* PURE: the size of a device's disk in one turn: the current and the wanted one. */
#pragma once

#include "ublkd/plan/plan.h"
#include "ublkd/proto/worker_msg.h"

#include <stdint.h>

struct device_geometry {
        uint64_t size;       /* bytes, from /sys; 0: no disk, or unknown */
        uint64_t wanted;     /* bytes; 0: any */
        uint32_t block_size; /* bytes, with size */
        int number;          /* of the disk, or -1 */
        int error;           /* 0, or -errno: why size and block size are unknown */
};

/* Return whether a turn with these facts needs the size of the disk, if it is known from a turn before: the next worker is
 * started with it, or the worker is compared with it, or may grow it. A worker that recovers the disk is compared with the
 * size that it was started with: only a change that was given up can have come since, if there is one (may_grow). */
bool device_geometry_matters(const struct plan_facts *facts, bool may_grow);

/* Return the size in bytes that a spec with this size (0: that of the backing store) wants of a worker with
 * these parameters (NULL: unknown); 0: any. */
uint64_t device_geometry_wanted(uint64_t spec_size, const struct disk_params *params);

/* Check that a worker with these parameters can serve the disk. Return 0; -ESTALE: the store has
 * another size or block size; other -errno: the size of the disk is unknown. */
int device_geometry_check(const struct device_geometry *geometry, const struct disk_params *params);
