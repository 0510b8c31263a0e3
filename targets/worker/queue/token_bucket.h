/* SPDX-License-Identifier: MIT */
/* A limit on how much may pass per second, held by several takers together.
 *
 * The state is one number, so that queues can share it without a lock: the time until which all that was
 * handed out is paid for. A request that takes an amount pushes it on by what the amount costs, and may go on as soon as
 * no more than a burst is unpaid. Takers are served in the order in which they take; each takes for one
 * request at a time. A request that is larger than the burst goes on when nothing is unpaid, and those after
 * it pay for it. */
#pragma once

#include <stdint.h>

/* What a limit comes to. All zero: no limit. */
struct token_rate {
        double cost;       /* time for one unit, in sixteenths of a nanosecond */
        uint64_t burst;    /* the time that a burst costs */
        uint64_t debt_max; /* more unpaid time than the takers can have caused is a mistake, and cut
                              off */
};

/* Return the rate of a limit. per_second, burst: units, at least 1; burst 0: as much as in a tenth of a
 * second. largest: units of the largest request. takers: how many share the bucket. */
struct token_rate token_rate(uint64_t per_second, uint64_t burst, uint64_t largest, unsigned takers);

/* Take `amount` units out of the bucket *paid_until (0 at first), which may be shared between processes.
 * Return the time at which the taker may continue: at most `now` if at once. Times are nanoseconds of
 * CLOCK_MONOTONIC. */
uint64_t token_bucket_take(
        uint64_t *paid_until, const struct token_rate *rate, uint64_t now, uint64_t amount);
