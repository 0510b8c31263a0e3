/* SPDX-License-Identifier: MIT */
/* The time, cheaply enough to look at it in every round of a queue: nanoseconds that rise steadily, within
 * 0.01 % of CLOCK_MONOTONIC's pace but without its zero.
 *
 * clock_gettime() takes some 70 instructions, and a round of one small request has not many thousand. Where
 * the kernel itself keeps time by the CPU's time stamp counter (so it is steady, and the same on all CPUs),
 * the counter is read instead; its pace is learnt in the first 20 ms. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct round_clock {
        uint64_t scale;      /* nanoseconds per tick, times 2^32; 0: clock_gettime() */
        uint64_t zero_ticks; /* the pair that all else counts from */
        uint64_t zero_ns;
        bool learning;
};

/* Return whether the kernel keeps time by the time stamp counter. Needs /sys. */
bool round_clock_has_ticks(void);

/* Initialise a clock. ticks: from round_clock_has_ticks(). */
void round_clock_open(struct round_clock *clock, bool ticks);

/* Return the time without ticks, and learn their pace from it; for round_clock_now(). */
uint64_t round_clock_slow(struct round_clock *clock);

static inline uint64_t round_clock_ticks(void)
{
#if defined(__x86_64__)
        return __builtin_ia32_rdtsc();
#else
        return 0;
#endif
}

/* Convert ticks to nanoseconds, once the pace is learnt. Signed: after a suspend to memory the counter may
 * have started again, and then the time is earlier than it was. */
static inline uint64_t round_clock_at(const struct round_clock *clock, uint64_t ticks)
{
        __extension__ typedef __int128 wide;

        return clock->zero_ns
               + (uint64_t)((wide)(int64_t)(ticks - clock->zero_ticks) * (int64_t)clock->scale >> 32);
}

/* Return the time in nanoseconds. A caller that subtracts two of these must be ready for the second to be
 * less: see round_clock_at(). */
static inline uint64_t round_clock_now(struct round_clock *clock)
{
        if (__builtin_expect(clock->scale == 0, 0))
                return round_clock_slow(clock);
        return round_clock_at(clock, round_clock_ticks());
}
