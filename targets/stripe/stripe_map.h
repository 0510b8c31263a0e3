/* SPDX-License-Identifier: MIT */
/* Where a byte of a stripe target lies. Chunk N of the disk is chunk N / count of child N % count. Pure. */
#pragma once

#include "targets/target.h"

struct stripe_map {
        uint64_t chunk; /* bytes */
        unsigned count; /* of children */
};

/* Return how many of the first `byte` bytes of the disk lie on the child. */
uint64_t stripe_map_before(const struct stripe_map *map, unsigned child, uint64_t byte);
/* Write the next part of a request: of a read and a write chunk by chunk, in the order of their data; of all other operations one
 * part for each child, because what lies on a child has no gap there. Return false if there is none any more. */
bool stripe_map_divide(const struct stripe_map *map, const struct target_io *io, struct target_cursor *cursor,
        struct target_part *ret);
