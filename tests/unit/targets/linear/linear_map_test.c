/* SPDX-License-Identifier: MIT */
/* The map of the linear target: every request on small disks, against a byte-by-byte account. */
#include "targets/linear/linear_map.h"
#include "tests/unit/check.h"

enum { BYTES_MAX = 24 };

/* Where byte `byte` lies, one child after another. */
static void locate(const struct linear_map *map, uint64_t byte, unsigned *ret_child, uint64_t *ret_offset)
{
        unsigned child = 0;

        while (child + 1 < map->count && byte >= map->starts[child + 1])
                child++;
        *ret_child = child;
        *ret_offset = map->offset + byte - map->starts[child];
}

static void check_request(const struct linear_map *map, enum io_op op, uint64_t offset, uint32_t length)
{
        struct target_io io = {.op = op, .offset = offset, .length = length};
        struct target_cursor cursor = {};
        struct target_part part;
        uint32_t done = 0;
        unsigned last = UINT32_MAX;

        while (linear_map_divide(map, &io, &cursor, &part)) {
                CHECK(part.child != last); /* one part for a child */
                CHECK_INT(part.position, done);
                CHECK(part.length > 0);
                for (uint32_t i = 0; i < part.length; i++) {
                        unsigned child;
                        uint64_t there;

                        locate(map, offset + done + i, &child, &there);
                        CHECK_INT(part.child, child);
                        CHECK_INT(part.offset + i, there);
                }
                last = part.child;
                done += part.length;
        }
        CHECK_INT(done, length);
}

static void check_all(const struct linear_map *map)
{
        static const enum io_op ops[] = {IO_READ, IO_WRITE, IO_DISCARD, IO_WRITE_ZEROES};

        for (size_t op = 0; op < ARRAY_SIZE(ops); op++)
                for (uint64_t offset = 0; offset < BYTES_MAX; offset++)
                        for (uint32_t length = 1; offset + length <= BYTES_MAX; length++)
                                check_request(map, ops[op], offset, length);
}

static void test_part_of_a_child(void)
{
        for (uint64_t offset = 0; offset < 5; offset++)
                check_all(&(struct linear_map){.offset = offset, .count = 1});
}

static void test_children_one_after_another(void)
{
        for (uint64_t one = 1; one < 8; one++)
                for (uint64_t two = 1; two < 8; two++)
                        check_all(&(struct linear_map){
                                .count = 3, .starts = {0, one, one + two}
                        });
}

static void test_flush_reaches_each_child_once(void)
{
        const struct linear_map map = {
                .count = 3, .starts = {0, 1, 2}
        };
        struct target_io io = {.op = IO_FLUSH};
        struct target_cursor cursor = {};
        struct target_part part;
        unsigned child = 0;

        while (linear_map_divide(&map, &io, &cursor, &part)) {
                CHECK_INT(part.child, child++);
                CHECK_INT(part.length, 0);
        }
        CHECK_INT(child, 3);
}

/* As many children as a tree can have, and offsets beyond 32 bits. */
static void test_many_and_large(void)
{
        struct linear_map map = {.count = LINEAR_CHILDREN_MAX};
        uint64_t each = UINT64_C(1) << 40;

        for (unsigned i = 0; i < map.count; i++)
                map.starts[i] = i * each;
        for (unsigned i = 1; i < map.count; i++) {
                struct target_io io = {.op = IO_READ, .offset = i * each - 512, .length = 1024};
                struct target_cursor cursor = {};
                struct target_part part;

                CHECK(linear_map_divide(&map, &io, &cursor, &part));
                CHECK_INT(part.child, i - 1);
                CHECK_INT(part.offset, each - 512);
                CHECK_INT(part.length, 512);
                CHECK(linear_map_divide(&map, &io, &cursor, &part));
                CHECK_INT(part.child, i);
                CHECK_INT(part.offset, 0);
                CHECK_INT(part.position, 512);
                CHECK(!linear_map_divide(&map, &io, &cursor, &part));
        }
}

int main(void)
{
        test_part_of_a_child();
        test_children_one_after_another();
        test_flush_reaches_each_child_once();
        test_many_and_large();
        return check_report();
}
