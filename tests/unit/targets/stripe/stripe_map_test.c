/* SPDX-License-Identifier: MIT */
/* The map of the stripe target: every request on small disks, against a byte-by-byte account. */
#include "targets/stripe/stripe_map.h"
#include "tests/unit/check.h"

enum { BYTES_MAX = 26, CHILDREN_MAX = 4 };

/* Where each byte of the disk lies, by counting. */
static void lay_out(const struct stripe_map *map, unsigned children[BYTES_MAX], uint64_t offsets[BYTES_MAX])
{
        uint64_t next[CHILDREN_MAX] = {};

        for (unsigned i = 0, child = 0; i < BYTES_MAX; i++) {
                if (i > 0 && i % map->chunk == 0)
                        child = (child + 1) % map->count;
                children[i] = child;
                offsets[i] = next[child]++;
        }
}

static void check_data(const struct stripe_map *map, uint64_t offset, uint32_t length)
{
        struct target_io io = {.op = IO_READ, .offset = offset, .length = length};
        unsigned children[BYTES_MAX];
        uint64_t offsets[BYTES_MAX];
        struct target_cursor cursor = {};
        struct target_part part;
        uint32_t done = 0;

        lay_out(map, children, offsets);
        while (stripe_map_divide(map, &io, &cursor, &part)) {
                CHECK_INT(part.position, done);
                CHECK(part.length > 0 && part.length <= map->chunk);
                for (uint32_t i = 0; i < part.length; i++) {
                        CHECK_INT(part.child, children[offset + done + i]);
                        CHECK_INT(part.offset + i, offsets[offset + done + i]);
                }
                done += part.length;
        }
        CHECK_INT(done, length);
}

/* Each child once, and exactly the bytes of the range. */
static void check_range(const struct stripe_map *map, enum io_op op, uint64_t offset, uint32_t length)
{
        struct target_io io = {.op = op, .offset = offset, .length = length};
        unsigned children[BYTES_MAX], seen[CHILDREN_MAX] = {};
        uint64_t offsets[BYTES_MAX];
        struct target_cursor cursor = {};
        struct target_part part;
        uint32_t covered = 0;

        lay_out(map, children, offsets);
        while (stripe_map_divide(map, &io, &cursor, &part)) {
                CHECK_INT(seen[part.child]++, 0);
                CHECK(part.length > 0);
                covered += part.length;
                for (uint32_t i = 0; i < length; i++)
                        if (children[offset + i] == part.child)
                                CHECK(offsets[offset + i] >= part.offset
                                        && offsets[offset + i] < part.offset + part.length);
        }
        CHECK_INT(covered, length);
}

static void test_every_request(void)
{
        for (unsigned count = 1; count <= CHILDREN_MAX; count++)
                for (uint64_t chunk = 1; chunk <= 6; chunk++)
                        for (uint64_t offset = 0; offset < BYTES_MAX; offset++)
                                for (uint32_t length = 1; offset + length <= BYTES_MAX; length++) {
                                        const struct stripe_map map = {.chunk = chunk, .count = count};

                                        check_data(&map, offset, length);
                                        check_range(&map, IO_DISCARD, offset, length);
                                        check_range(&map, IO_WRITE_ZEROES, offset, length);
                                }
}

static void test_flush_reaches_each_child_once(void)
{
        const struct stripe_map map = {.chunk = 4096, .count = 3};
        struct target_io io = {.op = IO_FLUSH};
        struct target_cursor cursor = {};
        struct target_part part;
        unsigned child = 0;

        while (stripe_map_divide(&map, &io, &cursor, &part)) {
                CHECK_INT(part.child, child++);
                CHECK_INT(part.length, 0);
        }
        CHECK_INT(child, 3);
}

/* The largest disk with the largest request. */
static void test_large(void)
{
        const struct stripe_map map = {.chunk = 16 << 20, .count = 63};
        struct target_io io = {
                .op = IO_DISCARD, .offset = (UINT64_C(4096) << 40) - (1U << 30), .length = 1U << 30};
        struct target_cursor cursor = {};
        struct target_part part;
        uint64_t covered = 0;

        while (stripe_map_divide(&map, &io, &cursor, &part))
                covered += part.length;
        CHECK_INT(covered, io.length);
}

int main(void)
{
        test_every_request();
        test_flush_reaches_each_child_once();
        test_large();
        return check_report();
}
