/* SPDX-License-Identifier: MIT */
/* A limit on how much may pass per second, held by several takers together. */
#include "targets/worker/queue/token_bucket.h"

#include <stdbool.h>

enum {
        SHIFT = 4
}; /* times inside are sixteenths of a nanosecond: good for 36 years, and for 10 million a second */

static const double COST_MAX = (double)(UINT64_C(1) << 59); /* a year */

static uint64_t cost_of(const struct token_rate *rate, uint64_t amount)
{
        double cost = rate->cost * (double)amount;

        return (uint64_t)(cost < COST_MAX ? cost : COST_MAX);
}

struct token_rate token_rate(uint64_t per_second, uint64_t burst, uint64_t largest, unsigned takers)
{
        struct token_rate rate = {.cost = 1e9 * (1 << SHIFT) / (double)per_second};

        if (burst == 0)
                burst = per_second / 10 > 0 ? per_second / 10 : 1;
        rate.burst = cost_of(&rate, burst);
        rate.debt_max = rate.burst + cost_of(&rate, largest * takers);
        return rate;
}

uint64_t token_bucket_take(uint64_t *paid_until, const struct token_rate *rate, uint64_t now, uint64_t amount)
{
        uint64_t before = __atomic_load_n(paid_until, __ATOMIC_RELAXED), from, start;
        uint64_t cost = cost_of(rate, amount), least = cost < rate->burst ? cost : rate->burst;

        now <<= SHIFT;
        do {
                from = before > now ? before : now;
                if (from - now > rate->debt_max)
                        from = now + rate->debt_max;
        } while (!__atomic_compare_exchange_n(
                paid_until, &before, from + cost, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        start = from + least > rate->burst ? from + least - rate->burst : 0;
        return (start + (1 << SHIFT) - 1) >> SHIFT;
}
