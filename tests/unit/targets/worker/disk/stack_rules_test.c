/* SPDX-License-Identifier: MIT */
/* The table of what a stack can do: each field, with every combination of values of two and three targets, in each order. */
#include "targets/worker/disk/stack_rules.h"
#include "tests/unit/check.h"

static uint32_t largest(uint32_t one, uint32_t other)
{
        return one > other ? one : other;
}

static uint32_t smallest(uint32_t one, uint32_t other)
{
        return one < other ? one : other;
}

static uint32_t tightest(uint32_t one, uint32_t other)
{
        return one == 0 ? other : other == 0 ? one : smallest(one, other);
}

/* Two geometries into one, as the table should. Field by field, so that a row that is missing is noticed. */
static struct target_geometry expected(const struct target_geometry *a, const struct target_geometry *b)
{
        return (struct target_geometry){
                .logical_block_size = largest(a->logical_block_size, b->logical_block_size),
                .logical_block_size_min = largest(a->logical_block_size_min, b->logical_block_size_min),
                .physical_block_size = largest(a->physical_block_size, b->physical_block_size),
                .io_min = largest(a->io_min, b->io_min),
                .io_opt = largest(a->io_opt, b->io_opt),
                .discard_granularity = largest(a->discard_granularity, b->discard_granularity),
                .max_discard_size = smallest(a->max_discard_size, b->max_discard_size),
                .max_write_zeroes_size = smallest(a->max_write_zeroes_size, b->max_write_zeroes_size),
                .read_only = a->read_only || b->read_only,
                .rotational = a->rotational || b->rotational,
                .volatile_cache = a->volatile_cache || b->volatile_cache,
                .prefers_zero_copy = a->prefers_zero_copy && b->prefers_zero_copy,
                .dma_alignment = largest(a->dma_alignment, b->dma_alignment),
                .max_segment_size = tightest(a->max_segment_size, b->max_segment_size),
                .max_segments = (uint16_t)tightest(a->max_segments, b->max_segments),
                .path_may_change = a->path_may_change || b->path_may_change,
        };
}

/* Bit N of `bits` chooses one of two values of field N. */
static struct target_geometry geometry_of(unsigned bits)
{
        return (struct target_geometry){
                .logical_block_size = bits & 1 ? 4096 : 512,
                .logical_block_size_min = bits & 2 ? 4096 : 0,
                .physical_block_size = bits & 4 ? 4096 : 512,
                .io_min = bits & 8 ? 65536 : 4096,
                .io_opt = bits & 16 ? 1 << 20 : 0,
                .discard_granularity = bits & 32 ? 65536 : 4096,
                .max_discard_size = bits & 64 ? 1 << 30 : 0,
                .max_write_zeroes_size = bits & 128 ? 1 << 30 : 16 << 20,
                .read_only = bits & 256,
                .rotational = bits & 512,
                .volatile_cache = bits & 1024,
                .prefers_zero_copy = bits & 2048,
                .dma_alignment = bits & 4096 ? 512 : 4,
                .max_segment_size = bits & 8192 ? 65536 : 0,
                .max_segments = bits & 16384 ? 128 : 0,
                .path_may_change = bits & 32768,
        };
}

static void check_same(const struct target_geometry *got, const struct target_geometry *wanted)
{
#define SAME(field) CHECK_INT(got->field, wanted->field)
        SAME(logical_block_size);
        SAME(logical_block_size_min);
        SAME(physical_block_size);
        SAME(io_min);
        SAME(io_opt);
        SAME(discard_granularity);
        SAME(max_discard_size);
        SAME(max_write_zeroes_size);
        SAME(read_only);
        SAME(rotational);
        SAME(volatile_cache);
        SAME(prefers_zero_copy);
        SAME(dma_alignment);
        SAME(max_segment_size);
        SAME(max_segments);
        SAME(path_may_change);
#undef SAME
}

/* The fields do not depend on each other: each of them takes all four pairs, with the others at either value. */
static void test_pairs(void)
{
        for (unsigned field = 0; field < 16; field++)
                for (unsigned pair = 0; pair < 4; pair++)
                        for (unsigned others = 0; others < 4; others++) {
                                unsigned bit = 1U << field;
                                struct target_geometry one = geometry_of((others & 1 ? ~bit : 0)
                                                                         | (pair & 1 ? bit : 0)),
                                                       two = geometry_of((others & 2 ? ~bit : 0)
                                                                         | (pair & 2 ? bit : 0)),
                                                       got = {}, wanted = expected(&one, &two);
                                const struct target_geometry *const children[] = {&one, &two};

                                stack_rules_combine(children, 2, &got);
                                check_same(&got, &wanted);
                        }
}

static void test_three_in_each_order(void)
{
        static const unsigned orders[][3] = {
                {0, 1, 2},
                {0, 2, 1},
                {1, 0, 2},
                {1, 2, 0},
                {2, 0, 1},
                {2, 1, 0}
        };
        struct target_geometry of[3] = {geometry_of(0x5a5a), geometry_of(0x1234), geometry_of(0xffff)},
                               two = expected(&of[0], &of[1]), wanted = expected(&two, &of[2]);

        for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
                const struct target_geometry *const children[] = {
                        &of[orders[i][0]], &of[orders[i][1]], &of[orders[i][2]]};
                struct target_geometry got = {};

                stack_rules_combine(children, 3, &got);
                check_same(&got, &wanted);
        }
}

static void test_one_is_as_its_child(void)
{
        struct target_geometry child = geometry_of(0xa5c3), got = {};
        const struct target_geometry *const children[] = {&child};

        stack_rules_combine(children, 1, &got);
        check_same(&got, &child);
}

static int perform(struct target_io *io)
{
        return (int)io->length;
}

static int flush(struct target_io *io)
{
        (void)io;
        return 0;
}

/* Every set of callbacks of one target beside every set of another one. */
static void test_callbacks(void)
{
        for (unsigned bits = 0; bits < 256; bits++) {
                const struct target one = {.read = perform,
                                            .write = bits & 1 ? perform : NULL,
                                            .flush = bits & 2 ? flush : NULL,
                                            .discard = bits & 4 ? perform : NULL,
                                            .write_zeroes = bits & 8 ? perform : NULL},
                                    two = {.read = perform,
                                            .write = bits & 16 ? perform : NULL,
                                            .flush = bits & 32 ? flush : NULL,
                                            .discard = bits & 64 ? perform : NULL,
                                            .write_zeroes = bits & 128 ? perform : NULL};
                const struct target *const targets[] = {&one, &two};
                struct target got = {};

                stack_rules_callbacks(targets, 2, perform, flush, &got);
                CHECK(got.read == perform);
                CHECK_INT(got.write == perform, one.write && two.write);
                CHECK_INT(got.flush == flush, one.flush || two.flush);
                CHECK_INT(got.discard == perform, one.discard && two.discard);
                CHECK_INT(got.write_zeroes == perform, one.write_zeroes && two.write_zeroes);
        }
}

int main(void)
{
        test_pairs();
        test_three_in_each_order();
        test_one_is_as_its_child();
        test_callbacks();
        return check_report();
}
