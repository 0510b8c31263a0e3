/* SPDX-License-Identifier: MIT */
/* PURE: which sizes of a worker the supervisor accepts. A worker under an attacker's control may send any
 * size; the size goes to the kernel, and decides which part of the backing store belongs to the disk. */
#pragma once

#include "ublkd/proto/worker_msg.h"

/* The GROWs that a worker got. Zero-initialise. */
struct worker_growth {
        unsigned asked; /* GROWs that it has not answered */
        uint64_t size;  /* of the largest GROW, bytes */
};

/* Return why these PARAMS are invalid, as a clause for worker_death ("it ..."), or NULL. */
const char *worker_params_fault(const struct disk_params *params);

/* Check that a disk with these parameters can have `size` bytes, and note the GROW. Return 0 or -EFBIG. */
int worker_growth_ask(struct worker_growth *growth, const struct disk_params *params, uint64_t size);

/* Return why this GROWN is invalid, as a clause, or NULL: then count it as the answer to a GROW. params: NULL
 * before PARAMS. */
const char *worker_growth_answer(
        struct worker_growth *growth, const struct disk_params *params, const struct worker_msg *grown);
