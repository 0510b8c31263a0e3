/* SPDX-License-Identifier: MIT */
/* The time of a clock as one number. */
#pragma once

#include <stdint.h>
#include <time.h>

#define USEC_PER_SEC UINT64_C(1000000)
#define NSEC_PER_SEC UINT64_C(1000000000)

/* Return the time of a clock in nanoseconds. For clocks that every Linux has: with those it cannot fail. */
static inline uint64_t clock_nsec(clockid_t clock)
{
        struct timespec now;

        (void)clock_gettime(clock, &now);
        return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

/* Return the time of a clock in microseconds. */
static inline uint64_t clock_usec(clockid_t clock)
{
        return clock_nsec(clock) / 1000;
}

/* Return CLOCK_MONOTONIC in microseconds, the time of all deadlines. */
static inline uint64_t monotonic_now(void)
{
        return clock_usec(CLOCK_MONOTONIC);
}

/* Return the time of a clock in milliseconds. */
static inline int64_t clock_msec(clockid_t clock)
{
        return (int64_t)(clock_nsec(clock) / 1000000);
}
