/* SPDX-License-Identifier: MIT */
/* From what is wished for and what the backing store offers to the disk that the kernel shows. Pure. */
#pragma once

#include "targets/target.h"
#include "ublkd/proto/worker_msg.h"

/* What the spec asks of the disk, whatever its target. */
struct disk_wish {
        uint64_t size;       /* bytes; 0: what the target has */
        uint32_t block_size; /* bytes; 0: what the target prefers */
        bool read_only;
        bool has_data; /* there was a disk on the store before */
        uint16_t queues, queue_depth;
        uint32_t max_io_size; /* bytes */
};

/* Choose the parameters of a disk from the wish and the target's geometry. The caller owns ret->claims and
 * ret->sharing, copies of those of the geometry. Return 0; -EINVAL with every problem found (pointers into
 * the spec); -ENOMEM. */
int disk_geometry(const struct disk_wish *wish, const struct target_geometry *geometry,
        const struct target *target, struct disk_params *ret, struct problem_list *problems);

/* Add the problem that `wanted` bytes do not fit into a backing store of `there` bytes. has_data: it may have
 * been larger. Return 0 or -ENOMEM. */
int disk_size_refuse(uint64_t there, uint64_t wanted, bool has_data, struct problem_list *problems);

/* Return the bytes of the largest disk in blocks of block_size over a backing store of `there` bytes, never
 * more than a disk may have; UINT64_MAX if `there` is 0: the store has no size of its own. */
uint64_t disk_size_max(uint64_t there, uint32_t block_size);
