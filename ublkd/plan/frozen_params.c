/* SPDX-License-Identifier: MIT */
/* Whether a worker can serve a disk whose parameters the kernel froze.
 *
 * What openers rely on must hold: the block size, how large and how aligned a request may be, whether flushes
 * come at all. What is advice to them (physical block size, preferred sizes, granularity of discards,
 * rotational) may differ: the administrator can change it below a living disk, and nothing breaks. So may the
 * limits of segments: the block layer below splits a request that is beyond them. */
#include "ublkd/plan/frozen_params.h"

#include "ublkd/base/cleanup.h"

#include <stddef.h>
#include <string.h>

enum rule {
        RULE_EQUAL,
        RULE_AT_LEAST, /* the worker can do as much, or more */
        RULE_AT_MOST,  /* the worker asks for as little, or less */
        RULE_STILL,    /* what could be done still can: 0 only where it was 0 */
};

struct frozen_param {
        const char *name;
        size_t offset, size;
        enum rule rule;
};

/* What the block layer demands of every request where nothing was set (SECTOR_SIZE - 1,
 * blk_set_default_limits()). */
enum { DMA_ALIGNMENT_DEFAULT = 512 };

#define PARAM(text, member, how)                                                                             \
        {.name = text,                                                                                       \
                .offset = offsetof(struct disk_params, member),                                              \
                .size = sizeof(((struct disk_params *)NULL)->member),                                        \
                .rule = how}

static const struct frozen_param params[] = {
        PARAM("blockSize", logical_block_size, RULE_EQUAL),
        PARAM("queues", queues, RULE_EQUAL),
        PARAM("queueDepth", queue_depth, RULE_EQUAL),
        PARAM("maxIoSize", max_io_size, RULE_AT_LEAST),
        PARAM("readOnly", read_only, RULE_AT_MOST),           /* a disk that can be written stays so */
        PARAM("volatileCache", volatile_cache, RULE_AT_MOST), /* else its openers would not flush */
        PARAM("fua", fua, RULE_AT_LEAST),
        PARAM("maxDiscardSize", max_discard_size, RULE_STILL),
        PARAM("maxWriteZeroesSize", max_write_zeroes_size, RULE_STILL),
        PARAM("dmaAlignment", dma_alignment, RULE_AT_MOST),
};

static uint64_t value_of(const struct disk_params *in, const struct frozen_param *param)
{
        const char *at = (const char *)in + param->offset;
        uint64_t value = 0;

        switch (param->size) {
        case sizeof(uint8_t):
                value = *(const bool *)at;
                break;
        case sizeof(uint16_t):
                value = *(const uint16_t *)at;
                break;
        case sizeof(uint32_t):
                value = *(const uint32_t *)at;
                break;
        case sizeof(uint64_t):
                value = *(const uint64_t *)at;
                break;
        }
        return value;
}

static bool fits(enum rule rule, uint64_t frozen, uint64_t now)
{
        switch (rule) {
        case RULE_EQUAL:
                return now == frozen;
        case RULE_AT_LEAST:
                return now >= frozen;
        case RULE_AT_MOST:
                return now <= frozen;
        case RULE_STILL:
                return now > 0 || frozen == 0;
        }
        return false;
}

bool frozen_params_fit(const struct disk_params *frozen, const struct disk_params *now,
        const char **ret_field, uint64_t *ret_frozen, uint64_t *ret_now)
{
        for (size_t i = 0; i < ARRAY_SIZE(params); i++) {
                uint64_t before = value_of(frozen, &params[i]), after = value_of(now, &params[i]);

                if (params[i].offset == offsetof(struct disk_params, dma_alignment) && before == 0)
                        before = DMA_ALIGNMENT_DEFAULT;
                if (fits(params[i].rule, before, after))
                        continue;
                *ret_field = params[i].name;
                *ret_frozen = before;
                *ret_now = after;
                return false;
        }
        return true;
}
