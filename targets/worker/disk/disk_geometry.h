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

/* Returns 0; -EINVAL with every problem found (pointers into the spec); -ENOMEM. ret->claims and
 * ret->sharing are copies of those of the geometry, owned by the caller. */
int disk_geometry(const struct disk_wish *wish, const struct target_geometry *geometry,
        const struct target *target, struct disk_params *ret, struct problem_list *problems);

/* Says that `wanted` bytes do not fit into a backing store of `there`. has_data: it may have been larger. What
 * problem_add() returns. */
int disk_size_refuse(uint64_t there, uint64_t wanted, bool has_data, struct problem_list *problems);

/* How large a disk in blocks of block_size can be over a backing store of `there` bytes (0: it has no size of
 * its own; then UINT64_MAX). Bytes, never more than a disk may have. */
uint64_t disk_size_max(uint64_t there, uint32_t block_size);
