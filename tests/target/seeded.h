/* SPDX-License-Identifier: MIT */
/* The random numbers of a test against a model, which UBLKD_TEST_SEED repeats. One file of a program includes it. */
#pragma once

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

static uint64_t seed; /* of the next number; not 0 */

/* Return a number below `limit`, which is not 0 (xorshift64). */
static inline uint64_t next_random(uint64_t limit)
{
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        return seed % limit;
}

/* Take the seed of the environment, or draw one; print it. */
static inline void read_seed(void)
{
        const char *text = getenv("UBLKD_TEST_SEED");

        if (text)
                seed = strtoull(text, NULL, 0);
        else if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
                seed = 4711;
        seed |= 1;
        printf("UBLKD_TEST_SEED=%" PRIu64 "\n", seed);
}
