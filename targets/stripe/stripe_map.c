/* SPDX-License-Identifier: MIT */
/* Where a byte of a stripe target lies. */
#include "targets/stripe/stripe_map.h"

uint64_t stripe_map_before(const struct stripe_map *map, unsigned child, uint64_t byte)
{
        uint64_t row = map->chunk * map->count, rest = byte % row, first = map->chunk * child;
        uint64_t in_row = rest <= first ? 0 : rest - first;

        return byte / row * map->chunk + (in_row < map->chunk ? in_row : map->chunk);
}

static bool divide_by_chunk(const struct stripe_map *map, const struct target_io *io,
        struct target_cursor *cursor, struct target_part *ret)
{
        uint64_t byte = io->offset + cursor->done, number = byte / map->chunk, inside = byte % map->chunk;
        uint32_t length = io->length - cursor->done;

        if (length == 0)
                return false;
        if (length > map->chunk - inside)
                length = (uint32_t)(map->chunk - inside);
        *ret = (struct target_part){
                .child = (unsigned)(number % map->count),
                .offset = number / map->count * map->chunk + inside,
                .position = cursor->done,
                .length = length,
        };
        cursor->done += length;
        return true;
}

static bool divide_by_child(const struct stripe_map *map, const struct target_io *io,
        struct target_cursor *cursor, struct target_part *ret)
{
        while (cursor->child < map->count) {
                unsigned child = cursor->child++;
                uint64_t start = stripe_map_before(map, child, io->offset),
                         end = stripe_map_before(map, child, io->offset + io->length);

                *ret = (struct target_part){
                        .child = child, .offset = start, .length = (uint32_t)(end - start)};
                if (end > start || io->op == IO_FLUSH)
                        return true;
        }
        return false;
}

bool stripe_map_divide(const struct stripe_map *map, const struct target_io *io, struct target_cursor *cursor,
        struct target_part *ret)
{
        if (io->op == IO_READ || io->op == IO_WRITE)
                return divide_by_chunk(map, io, cursor, ret);
        return divide_by_child(map, io, cursor, ret);
}
