/* SPDX-License-Identifier: MIT */
/* Failures so far → how long to wait. */
#include "ublkd/plan/backoff.h"

enum {
        DELAY_FIRST = 100 * 1000,
        DELAY_MAX = 30 * 1000 * 1000,
        BUSY_FIRST = 1000,
        BUSY_TRIES = 4, /* at each delay */
        BUSY_MAX = 100 * 1000,
        POLL_MIN = 2 * 1000,
        POLL_MAX = 1000 * 1000,
};

static uint64_t doubled(uint64_t first, unsigned times, uint64_t limit)
{
        uint64_t delay = first;

        while (times-- > 0 && delay < limit)
                delay *= 2;
        return delay < limit ? delay : limit;
}

uint64_t backoff_delay(unsigned failures)
{
        return failures < 2 ? 0 : doubled(DELAY_FIRST, failures - 2, DELAY_MAX);
}

uint64_t backoff_busy(unsigned failures)
{
        return doubled(BUSY_FIRST, failures > 0 ? (failures - 1) / BUSY_TRIES : 0, BUSY_MAX);
}

uint64_t backoff_poll(uint64_t elapsed)
{
        uint64_t delay = elapsed / 2;

        return delay < POLL_MIN ? POLL_MIN : delay > POLL_MAX ? POLL_MAX : delay;
}
