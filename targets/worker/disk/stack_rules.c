/* SPDX-License-Identifier: MIT */
/* The table: a rule for each field. */
#include "targets/worker/disk/stack_rules.h"

enum rule {
        RULE_LARGEST,
        RULE_SMALLEST, /* 0 is the smallest: no such operation */
        RULE_TIGHTEST, /* the smallest that is not 0: 0 means no limit */
        RULE_ANY,
        RULE_ALL,
};

#define FIELD(field, which)                                                                                  \
        {.offset = offsetof(struct target_geometry, field),                                                  \
                .size = sizeof(((struct target_geometry *)0)->field),                                        \
                .rule = (which)}

static const struct {
        size_t offset, size;
        enum rule rule;
} fields[] = {
        FIELD(logical_block_size, RULE_LARGEST),
        FIELD(logical_block_size_min, RULE_LARGEST),
        FIELD(physical_block_size, RULE_LARGEST),
        FIELD(io_min, RULE_LARGEST),
        FIELD(io_opt, RULE_LARGEST),
        FIELD(discard_granularity, RULE_LARGEST),
        FIELD(max_discard_size, RULE_SMALLEST),
        FIELD(max_write_zeroes_size, RULE_SMALLEST),
        FIELD(read_only, RULE_ANY),
        FIELD(rotational, RULE_ANY),
        FIELD(volatile_cache, RULE_ANY),
        FIELD(prefers_zero_copy, RULE_ALL),
        FIELD(dma_alignment, RULE_LARGEST),
        FIELD(max_segment_size, RULE_TIGHTEST),
        FIELD(max_segments, RULE_TIGHTEST),
        FIELD(path_may_change, RULE_ANY),
};

static uint32_t get(const struct target_geometry *geometry, size_t i)
{
        const char *field = (const char *)geometry + fields[i].offset;

        switch (fields[i].size) {
        case sizeof(bool):
                return *(const bool *)field;
        case sizeof(uint16_t):
                return *(const uint16_t *)field;
        default:
                return *(const uint32_t *)field;
        }
}

static void set(struct target_geometry *geometry, size_t i, uint32_t value)
{
        char *field = (char *)geometry + fields[i].offset;

        switch (fields[i].size) {
        case sizeof(bool):
                *(bool *)field = value != 0;
                break;
        case sizeof(uint16_t):
                *(uint16_t *)field = (uint16_t)value;
                break;
        default:
                *(uint32_t *)field = value;
                break;
        }
}

static uint32_t combine(enum rule rule, uint32_t one, uint32_t other)
{
        uint32_t smaller = one < other ? one : other, larger = one < other ? other : one;

        switch (rule) {
        case RULE_LARGEST:
                return larger;
        case RULE_TIGHTEST:
                return smaller > 0 ? smaller : larger;
        case RULE_ANY:
                return one || other;
        case RULE_ALL:
                return one && other;
        default:
                return smaller;
        }
}

void stack_rules_combine(
        const struct target_geometry *const children[], unsigned count, struct target_geometry *ret)
{
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
                uint32_t value = get(children[0], i);

                for (unsigned child = 1; child < count; child++)
                        value = combine(fields[i].rule, value, get(children[child], i));
                set(ret, i, value);
        }
}

void stack_rules_callbacks(const struct target *const targets[], unsigned count,
        int (*perform)(struct target_io *io), int (*flush)(struct target_io *io), struct target *ret)
{
        bool write = true, flushes = false, discard = true, write_zeroes = true;

        for (unsigned i = 0; i < count; i++) {
                write = write && targets[i]->write;
                flushes = flushes || targets[i]->flush;
                discard = discard && targets[i]->discard;
                write_zeroes = write_zeroes && targets[i]->write_zeroes;
        }
        ret->read = perform;
        ret->write = write ? perform : NULL;
        ret->flush = flushes ? flush : NULL;
        ret->discard = discard ? perform : NULL;
        ret->write_zeroes = write_zeroes ? perform : NULL;
}
