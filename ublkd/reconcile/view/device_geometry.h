/* SPDX-License-Identifier: MIT */
/* PURE: the size of a device's disk in one turn: the current and the wanted one. */
#pragma once

#include "ublkd/proto/worker_msg.h"

#include <stdint.h>

struct device_geometry {
        uint64_t size;       /* bytes, from /sys; 0: no disk, or unknown */
        uint64_t wanted;     /* bytes; 0: any */
        uint32_t block_size; /* bytes, with size */
        int number;          /* of the disk, or -1 */
        int error;           /* 0, or -errno: why size and block size are unknown */
};

/* Return the size in bytes that a spec with this size (0: that of the backing store) wants of a worker with
 * these parameters (NULL: unknown); 0: any. */
uint64_t device_geometry_wanted(uint64_t spec_size, const struct disk_params *params);

/* Check that a worker with these parameters can serve the disk. Return 0; -ESTALE: the store has
 * another size or block size; other -errno: the size of the disk is unknown. */
int device_geometry_check(const struct device_geometry *geometry, const struct disk_params *params);
