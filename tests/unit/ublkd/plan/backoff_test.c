/* SPDX-License-Identifier: MIT */
/* The ladders of backoff.c, rung by rung. */
#include "tests/unit/check.h"
#include "ublkd/plan/backoff.h"

#include <limits.h>

static void check_ladder(uint64_t (*ladder)(unsigned), const unsigned *wanted_ms, unsigned count)
{
        for (unsigned i = 0; i < count; i++)
                CHECK_INT(ladder(i + 1), (uint64_t)wanted_ms[i] * 1000);
}

int main(void)
{
        static const unsigned delays[] = {
                0, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000};
        static const unsigned busy[] = {1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 16, 16, 16, 16, 32,
                32, 32, 32, 64, 64, 64, 64, 100, 100, 100};

        check_ladder(backoff_delay, delays, sizeof(delays) / sizeof(delays[0]));
        CHECK_INT(backoff_delay(0), 0);
        CHECK_INT(backoff_delay(UINT_MAX), 30000000);
        check_ladder(backoff_busy, busy, sizeof(busy) / sizeof(busy[0]));
        CHECK_INT(backoff_busy(UINT_MAX), 100000);

        CHECK_INT(backoff_poll(0), 2000);
        CHECK_INT(backoff_poll(10000), 5000);
        CHECK_INT(backoff_poll(UINT64_MAX), 1000000);
        return check_report();
}
