/* SPDX-License-Identifier: MIT */
/* Where a byte of a linear target lies. */
#include "targets/linear/linear_map.h"

/* Return the last child that begins at or before the byte. */
static unsigned child_at(const struct linear_map *map, uint64_t byte)
{
        unsigned low = 0, high = map->count - 1;

        while (low < high) {
                unsigned middle = low + (high - low + 1) / 2;

                if (map->starts[middle] <= byte)
                        low = middle;
                else
                        high = middle - 1;
        }
        return low;
}

bool linear_map_divide(const struct linear_map *map, const struct target_io *io, struct target_cursor *cursor,
        struct target_part *ret)
{
        uint64_t byte = io->offset + cursor->done;
        uint32_t length = io->length - cursor->done;
        unsigned child;

        if (io->op == IO_FLUSH) {
                *ret = (struct target_part){.child = cursor->child};
                return cursor->child++ < map->count;
        }
        if (length == 0)
                return false;
        child = child_at(map, byte);
        if (child + 1 < map->count && map->starts[child + 1] - byte < length)
                length = (uint32_t)(map->starts[child + 1] - byte);
        *ret = (struct target_part){
                .child = child,
                .offset = map->offset + byte - map->starts[child],
                .position = cursor->done,
                .length = length,
        };
        cursor->done += length;
        return true;
}
