/* SPDX-License-Identifier: MIT */
/* Where a byte of a linear target lies: on one child from an offset on, or on the children one after another. Pure. */
#pragma once

#include "targets/target.h"

enum { LINEAR_CHILDREN_MAX = 63 };

struct linear_map {
        uint64_t offset; /* bytes; on the only child */
        unsigned count;  /* of children */
        uint64_t starts
                [LINEAR_CHILDREN_MAX]; /* bytes; where each child begins on the disk; the last one has no end */
};

/* Write the next part of a request. Return false if there is none any more. */
bool linear_map_divide(const struct linear_map *map, const struct target_io *io, struct target_cursor *cursor,
        struct target_part *ret);
