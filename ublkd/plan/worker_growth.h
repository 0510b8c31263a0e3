/* SPDX-License-Identifier: MIT */
/* PURE: which sizes of a worker the supervisor believes. A worker may lie; what it says of its size goes to
 * the kernel, and decides which part of the backing store belongs to its disk. */
#pragma once

#include "ublkd/proto/worker_msg.h"

/* What a worker was asked. Zero-initialise. */
struct worker_growth {
        unsigned asked; /* GROWs that it has not answered */
        uint64_t size;  /* the largest that it was ever asked for, bytes */
};

/* Why these PARAMS cannot be true, as a clause for worker_death ("it ..."), or NULL. */
const char *worker_params_fault(const struct disk_params *params);

/* Whether a disk of these parameters can have `size` bytes; then notes that it is asked for them. 0 or
 * -EFBIG. */
int worker_growth_ask(struct worker_growth *growth, const struct disk_params *params, uint64_t size);

/* Why this GROWN is not believed, as a clause, or NULL: then it is the answer to a GROW, and counted so.
 * `params`: NULL before PARAMS. */
const char *worker_growth_answer(
        struct worker_growth *growth, const struct disk_params *params, const struct worker_msg *grown);
