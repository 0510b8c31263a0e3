/* SPDX-License-Identifier: MIT */
/* The buckets of a latency histogram: log-linear, 16 to each doubling.
 *
 * A bucket is at most a sixteenth as wide as its lower bound, so a value reported as the middle of its bucket is
 * off by 3.2 % at most, and as either bound by 6.25 %; below 1,024 ns by 64 ns. The last bucket also takes
 * all that is longer than it (some 69 s). */
#pragma once

#include <stdint.h>

enum {
        LATENCY_UNIT_SHIFT = 6, /* the finest bucket: 64 ns */
        LATENCY_STEP_SHIFT = 4, /* 16 buckets to a doubling */
        LATENCY_BUCKETS = 448,
};

/* Return the bucket of `ns` nanoseconds. */
static inline unsigned latency_bucket(uint64_t ns)
{
        uint64_t units = ns >> LATENCY_UNIT_SHIFT;
        unsigned shift = 63 - LATENCY_STEP_SHIFT - (unsigned)__builtin_clzll(units | 1 << LATENCY_STEP_SHIFT);
        uint64_t bucket = ((uint64_t)shift << LATENCY_STEP_SHIFT) + (units >> shift);

        return bucket < LATENCY_BUCKETS ? (unsigned)bucket : LATENCY_BUCKETS - 1;
}

/* Return the smallest number of nanoseconds that belongs to `bucket`, which may be LATENCY_BUCKETS: then the
 * smallest that is beyond the last one's width. */
static inline uint64_t latency_bucket_start(unsigned bucket)
{
        unsigned steps = 1u << LATENCY_STEP_SHIFT;
        unsigned shift = bucket < 2 * steps ? 0 : bucket / steps - 1;

        return ((uint64_t)bucket - (uint64_t)shift * steps) << shift << LATENCY_UNIT_SHIFT;
}
