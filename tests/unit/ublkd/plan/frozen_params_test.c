/* SPDX-License-Identifier: MIT */
/* Whether a worker can serve a disk whose parameters the kernel froze. */
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/plan/frozen_params.h"

#include <string.h>

static const struct disk_params frozen = {
        .size = 1 << 20,
        .logical_block_size = 512,
        .physical_block_size = 4096,
        .max_io_size = 1 << 20,
        .discard_granularity = 4096,
        .max_discard_size = 1 << 30,
        .max_write_zeroes_size = 1 << 30,
        .volatile_cache = true,
        .fua = true,
        .queues = 2,
        .queue_depth = 64,
        .dma_alignment = 512,
        .max_segment_size = 65536,
        .max_segments = 128,
};

/* Changes one parameter, and expects the name of the one that does not fit; NULL: it still fits. */
#define CHECK_CHANGE(member, value, name)                                                                    \
        do {                                                                                                 \
                struct disk_params now = frozen;                                                             \
                now.member = value;                                                                          \
                check_fit(&frozen, &now, name, #member);                                                     \
        } while (0)

static void check_fit(
        const struct disk_params *before, const struct disk_params *now, const char *name, const char *what)
{
        const char *field = "fits";
        uint64_t was, is;
        bool fit = frozen_params_fit(before, now, &field, &was, &is);

        if (!CHECK_INT(fit, !name) || !CHECK_STR(field, name ? name : "fits"))
                fprintf(stderr, "    after a change of %s\n", what);
}

static void test_what_openers_rely_on(void)
{
        CHECK_CHANGE(logical_block_size, 4096, "blockSize");
        CHECK_CHANGE(queues, 1, "queues");
        CHECK_CHANGE(queue_depth, 128, "queueDepth");
        CHECK_CHANGE(max_io_size, 512 << 10, "maxIoSize");
        CHECK_CHANGE(read_only, true, "readOnly");
        CHECK_CHANGE(fua, false, "fua");
        CHECK_CHANGE(max_discard_size, 0, "maxDiscardSize");
        CHECK_CHANGE(max_write_zeroes_size, 0, "maxWriteZeroesSize");
        CHECK_CHANGE(dma_alignment, 4096, "dmaAlignment");
}

static void test_a_cache_without_flushes(void)
{
        struct disk_params before = frozen;

        before.volatile_cache = false;
        check_fit(&before, &frozen, "volatileCache", "volatile_cache");
}

static void test_what_only_advises(void)
{
        CHECK_CHANGE(size, 2 << 20, NULL);
        CHECK_CHANGE(physical_block_size, 512, NULL);
        CHECK_CHANGE(discard_granularity, 512, NULL);
        CHECK_CHANGE(rotational, true, NULL);
        CHECK_CHANGE(io_opt, 65536, NULL);
        CHECK_CHANGE(max_segments, 1, NULL);
        CHECK_CHANGE(max_segment_size, 4096, NULL);
}

static void test_a_store_that_can_do_more(void)
{
        CHECK_CHANGE(max_io_size, 2 << 20, NULL);
        CHECK_CHANGE(max_discard_size, 4096, NULL); /* it still can */
        CHECK_CHANGE(dma_alignment, 4, NULL);
        CHECK_CHANGE(volatile_cache, false, NULL);
}

/* Without a limit of its own a disk has the block layer's. */
static void test_no_alignment_was_frozen(void)
{
        struct disk_params before = frozen, now = frozen;

        before.dma_alignment = 0;
        check_fit(&before, &now, NULL, "dma_alignment");
        now.dma_alignment = 4096;
        check_fit(&before, &now, "dmaAlignment", "dma_alignment");
}

int main(void)
{
        test_what_openers_rely_on();
        test_a_cache_without_flushes();
        test_what_only_advises();
        test_a_store_that_can_do_more();
        test_no_alignment_was_frozen();
        return check_report();
}
