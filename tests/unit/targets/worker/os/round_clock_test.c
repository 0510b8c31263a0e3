/* SPDX-License-Identifier: MIT */
/* The cheap clock keeps the pace of the real one, and goes back only where its counter does. */
#include "targets/worker/os/round_clock.h"
#include "tests/unit/check.h"

#include <time.h>

static uint64_t monotonic(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Looks at both clocks for `ns`. */
static void keep_pace(struct round_clock *clock, uint64_t ns)
{
        uint64_t earliest = monotonic(), zero = round_clock_now(clock), latest = monotonic();
        uint64_t last = zero, before, now, after;

        do {
                before = monotonic();
                now = round_clock_now(clock);
                after = monotonic();
                CHECK(now >= last);
                /* Between two looks at the real one, as the first was, however long this process did not run;
                 * 20 us for the rate. */
                CHECK(now - zero + 20000 + latest >= before && now - zero <= after - earliest + 20000);
                last = now;
        } while (after - earliest < ns && check_failures == 0);
}

static void test_a_counter_that_restarts(void)
{
        const struct round_clock clock = {.scale = (UINT64_C(1) << 32) / 3, /* of 3 GHz */
                .zero_ticks = UINT64_C(3000000000) * 1000,
                .zero_ns = UINT64_C(1000000000) * 1000};
        uint64_t before = round_clock_at(&clock, clock.zero_ticks + 3000), after = round_clock_at(&clock, 0);

        CHECK(before - clock.zero_ns >= 999 && before - clock.zero_ns <= 1000);
        CHECK((int64_t)(after - before) < 0); /* a step back, not one of centuries ahead */
        CHECK(round_clock_at(&clock, 3000) - after <= 1000);
}

int main(void)
{
        struct round_clock clock;

        test_a_counter_that_restarts();

        round_clock_open(&clock, false);
        keep_pace(&clock, 1000000);
        CHECK_INT(clock.scale, 0);
        if (!round_clock_has_ticks()) /* then the first half is all that there is */
                return check_report();
        round_clock_open(&clock, true);
        while (clock.scale == 0 && check_failures == 0) /* it learns at a look after 20 ms */
                keep_pace(&clock, 1000000);
        keep_pace(&clock, 30000000);
        return check_report();
}
