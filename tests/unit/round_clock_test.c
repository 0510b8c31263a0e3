/* The cheap clock keeps the pace of the real one, and never goes back. */
#include "targets/worker/round_clock.h"
#include "check.h"

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

int main(void)
{
        struct round_clock clock;

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
