/* SPDX-License-Identifier: MIT */
/* Random numbers that a seed repeats (splitmix64). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct crash_random {
        uint64_t state;
};

/* Return `value` with its bits mixed: equal for equal values, else as if drawn. */
static inline uint64_t crash_mix(uint64_t value)
{
        value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
        return value ^ value >> 31;
}

/* Return a number below `limit`, which is not 0. */
static inline uint64_t crash_random_below(struct crash_random *random, uint64_t limit)
{
        random->state += UINT64_C(0x9e3779b97f4a7c15);
        return crash_mix(random->state) % limit;
}

/* Return true in `percent` of 100 cases. */
static inline bool crash_random_chance(struct crash_random *random, unsigned percent)
{
        return crash_random_below(random, 100) < percent;
}
