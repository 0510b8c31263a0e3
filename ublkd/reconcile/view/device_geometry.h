/* SPDX-License-Identifier: MIT */
/* The size of a device's disk in one turn: that it has, and that it shall have. */
#pragma once

#include "ublkd/proto/worker_msg.h"

#include <stdint.h>

struct device_geometry {
        uint64_t size;       /* bytes, as the kernel shows it; 0: there is no disk, or it is not known */
        uint64_t wanted;     /* bytes; 0: any size will do */
        uint32_t block_size; /* bytes, with size */
        int error;           /* 0, or -errno: why size and block size are not known */
};

/* Look at /dev/ublkbN; -1: there is no disk. Once in a turn: it is a part of every recovery, and files of /sys are
 * slow to open. `wanted` stays. */
void device_geometry_read(struct device_geometry *geometry, int number);

/* PURE: the size that a spec with this size (0: that of the backing store) wants of a worker with these parameters;
 * 0: any. NULL params: there is no worker that has told them. */
uint64_t device_geometry_wanted(uint64_t spec_size, const struct disk_params *params);

/* PURE: whether a worker with these parameters can serve the disk. 0; -ESTALE: the store has another size or block
 * size; other -errno: the size of the disk is not known. */
int device_geometry_check(const struct device_geometry *geometry, const struct disk_params *params);
