/* SPDX-License-Identifier: MIT */
/* From wish and backing store to disk: what is chosen, and what is refused in which words. */
#include "targets/worker/disk/disk_geometry.h"
#include "tests/unit/check.h"

static int callback(struct target_io *io)
{
        return (int)io->length;
}

static const struct target_desc desc = {.name = "fake"},
                                one_queue_desc = {.name = "fake", .flags = TARGET_ONE_QUEUE};
static const struct target full = {
        .desc = &desc,
        .read = callback,
        .write = callback,
        .flush = callback,
        .discard = callback,
        .write_zeroes = callback,
};
static const struct target reader = {.desc = &one_queue_desc, .read = callback};
static const struct target_geometry plain = {
        .size = 1 << 20, .logical_block_size = 512, .volatile_cache = true};

static struct disk_wish wish(void)
{
        return (struct disk_wish){.queues = 4, .queue_depth = 64, .max_io_size = 1 << 20};
}

/* Runs it where it must succeed. */
static struct disk_params good(
        const struct disk_wish *wished, const struct target_geometry *geometry, const struct target *target)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct disk_params params = {};

        CHECK_INT(disk_geometry(wished, geometry, target, &params, &problems), 0);
        CHECK_INT(problems.count, 0);
        return params;
}

/* Runs it where it must fail with one problem. */
static void bad(const struct disk_wish *wished, const struct target_geometry *geometry, const char *pointer,
        const char *reason, const char *in_detail)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct disk_params params = {.size = 4711};

        CHECK_INT(disk_geometry(wished, geometry, &full, &params, &problems), -EINVAL);
        CHECK_INT(params.size, 4711);
        if (!CHECK_INT(problems.count, 1))
                return;
        CHECK_STR(problems.items[0].pointer, pointer);
        CHECK_STR(problems.items[0].reason, reason);
        CHECK(strstr(problems.items[0].detail, in_detail));
}

static void test_sizes(void)
{
        struct disk_wish wished = wish();
        struct target_geometry odd = {.size = 10000};
        struct target_geometry none = {};

        CHECK_INT(good(&wished, &plain, &full).size, 1 << 20);
        CHECK_INT(good(&wished, &odd, &full).size, 9728); /* whole blocks only */
        bad(&wished, &none, "/size", "SizeMissing", "no size of its own");
        odd.size = 100;
        bad(&wished, &odd, "/target", "BackingTooSmall", "less than one block");
        wished.size = 8192;
        CHECK_INT(good(&wished, &plain, &full).size, 8192);
        CHECK_INT(good(&wished, &none, &full).size, 8192);
        wished.size = 1000;
        bad(&wished, &plain, "/size", "SizeNotAMultiple", "1000 bytes is not a multiple");
        wished.size = 2 << 20;
        bad(&wished, &plain, "/size", "BackingTooSmall",
                "offers 1MiB, and the disk needs 2MiB; grow the backing store");
        wished.has_data = true;
        bad(&wished, &plain, "/size", "BackingTooSmall",
                "needs 2MiB; if the backing store was cut off, restore it from a copy");
        wished.size = 0;
        bad(&wished, &odd, "/target", "BackingTooSmall", "restore it from a copy");
}

/* Wherever a size comes from. */
static void test_no_disk_is_larger_than_the_maximum_of_a_spec(void)
{
        const uint64_t most = UINT64_C(4096) << 40;
        struct disk_wish wished = wish();
        struct target_geometry vast = {.size = UINT64_C(1) << 56}, largest = {.size = most}, none = {};

        bad(&wished, &vast, "/size", "TooLarge", "4096TiB at most");
        CHECK_INT(good(&wished, &largest, &full).size, most);
        wished.size = most;
        CHECK_INT(good(&wished, &vast, &full).size, most);
        CHECK_INT(good(&wished, &vast, &full).size_max, most); /* to which it may grow */
        CHECK(good(&wished, &none, &full).size_max == UINT64_MAX);
        wished.size = most + 512;
        bad(&wished, &vast, "/size", "TooLarge", "4096TiB at most");
        bad(&wished, &none, "/size", "TooLarge", "4096TiB at most");
}

static void test_block_sizes(void)
{
        struct disk_wish wished = wish();
        struct target_geometry coarse = {.size = 1 << 20, .logical_block_size_min = 4096};
        struct target_geometry preferring = {
                .size = 1 << 20, .logical_block_size = 2048, .physical_block_size = 3000};
        struct target_geometry large_blocks = {.size = 1 << 20, .physical_block_size = 65536};
        struct target_geometry striped = {.size = 1 << 20, .io_min = 65536, .io_opt = 3 * 65536};
        struct disk_params params;

        CHECK_INT(good(&wished, &plain, &full).logical_block_size, 512);
        CHECK_INT(good(&wished, &coarse, &full).logical_block_size, 4096);
        params = good(&wished, &preferring, &full);
        CHECK_INT(params.logical_block_size, 2048);
        CHECK_INT(params.physical_block_size, 2048);
        CHECK_INT(params.io_min, 2048);
        params = good(&wished, &striped, &full);
        CHECK_INT(params.io_min, 65536);
        CHECK_INT(params.io_opt, 65536);
        wished.max_io_size = 16384;
        params = good(&wished, &striped, &full);
        CHECK_INT(params.io_min, 16384);
        params = good(&wished, &large_blocks, &full);
        CHECK_INT(params.physical_block_size, 16384);
        CHECK_INT(params.max_io_size, 16384);
        wished = wish();
        wished.block_size = 4096;
        CHECK_INT(good(&wished, &plain, &full).logical_block_size, 4096);
        CHECK_INT(good(&wished, &preferring, &full).logical_block_size, 4096);
        wished.block_size = 1024;
        bad(&wished, &coarse, "/blockSize", "BlockSizeTooSmall",
                "The disk needs blocks of 1024 bytes, and the backing store can only do 4096; give a disk "
                "that exists");
        wished.block_size = 3000;
        bad(&wished, &plain, "/blockSize", "BlockSizeUnsupported", "3000");
        wished.block_size = 0;
        coarse.logical_block_size_min = 8192;
        bad(&wished, &coarse, "/target", "BackingBlockSizeUnsupported", "8192");
}

static void test_io_sizes(void)
{
        struct disk_wish wished = wish();

        wished.max_io_size = 100000;
        CHECK_INT(good(&wished, &plain, &full).max_io_size, 99840);
        wished.max_io_size = 512;
        CHECK_INT(good(&wished, &plain, &full).max_io_size, 4096);
        wished.max_io_size = UINT32_MAX;
        CHECK_INT(good(&wished, &plain, &full).max_io_size, 32 << 20);
}

static void test_operations(void)
{
        struct disk_wish wished = wish();
        struct target_geometry able = {
                .size = 1 << 20,
                .volatile_cache = true,
                .discard_granularity = 5000,
                .max_discard_size = 10000,
                .max_write_zeroes_size = 1000,
        };
        struct disk_params params = good(&wished, &able, &full);

        CHECK(params.volatile_cache && params.fua && !params.read_only);
        CHECK_INT(params.discard_granularity, 4096);
        CHECK_INT(params.max_discard_size, 8192);
        CHECK_INT(params.max_write_zeroes_size, 512);
        CHECK_INT(params.queues, 4);
        params = good(&wished, &plain, &full);
        CHECK_INT(params.max_discard_size, 0);
        CHECK_INT(params.max_write_zeroes_size, 0);
        /* A target that only reads makes a disk that is only read. */
        params = good(&wished, &able, &reader);
        CHECK(params.read_only && !params.volatile_cache && !params.fua);
        CHECK_INT(params.max_discard_size, 0);
        CHECK_INT(params.discard_granularity, 0);
        CHECK_INT(params.max_write_zeroes_size, 0);
        CHECK_INT(params.queues, 1);
        wished.read_only = true;
        params = good(&wished, &able, &full);
        CHECK(params.read_only);
        CHECK_INT(params.max_discard_size, 0);
        wished.read_only = false;
        able.read_only = true;
        CHECK(good(&wished, &able, &full).read_only);
}

static void test_claims(void)
{
        static struct backing_claim items[] = {
                {.key = (char *)"file:1:2:3", .start = 4096},
                {.key = (char *)"disk:8:16", .end = 77, .mapped = true},
        };
        struct disk_wish wished = wish();
        struct target_geometry claiming = {
                .size = 1 << 20, .claims = {items, ARRAY_SIZE(items)}
        };
        struct disk_params params = good(&wished, &claiming, &full);
        const struct backing_claim *claim = params.claims.items;

        if (CHECK_INT(params.claims.count, 2)) {
                CHECK_STR(claim[0].key, "file:1:2:3");
                CHECK(claim[0].key != items[0].key);
                CHECK(claim[0].start == 4096 && claim[0].end == 4096 + (1 << 20) && claim[0].writes);
                CHECK(claim[1].start == 0 && claim[1].end == 77 && claim[1].writes && claim[1].mapped);
        }
        backing_claims_clear(&params.claims);
        CHECK_INT(good(&wished, &plain, &full).claims.count, 0);
}

static void test_sharing(void)
{
        struct disk_wish wished = wish();
        struct target_geometry shared = {.size = 1 << 20};
        struct disk_params params;

        CHECK_INT(problem_add(&shared.sharing, EBUSY, "/target/path", "BackingInUse", "Used."), 0);
        params = good(&wished, &shared, &full);
        CHECK_INT(params.sharing.count, 1);
        problem_list_clear(&params.sharing);
        problem_list_clear(&shared.sharing);
}

int main(void)
{
        test_sizes();
        test_no_disk_is_larger_than_the_maximum_of_a_spec();
        test_block_sizes();
        test_io_sizes();
        test_operations();
        test_claims();
        test_sharing();
        return check_report();
}
