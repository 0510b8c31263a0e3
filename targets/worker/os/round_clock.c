/* SPDX-License-Identifier: MIT */
/* The time, cheaply enough to look at it in every round of a queue. */
#include "targets/worker/os/round_clock.h"
#include "ublkd/base/file_io.h"
#include "ublkd/base/clock.h"

#include <fcntl.h>
#include <string.h>

enum {
        LEARN_NS = 20 * 1000 * 1000,
        PAIR_TRIES = 8,
};

/* Both clocks at one instant, and how much the counter went on while they were looked at. */
struct pair {
        uint64_t ticks, ns, took;
};

static struct pair look_at_both(void)
{
        uint64_t before = round_clock_ticks(), ns = clock_nsec(CLOCK_MONOTONIC),
                 took = round_clock_ticks() - before;

        return (struct pair){.ticks = before + took / 2, .ns = ns, .took = took};
}

/* The one of some pairs that took the shortest time. */
static void take_pair(uint64_t *ret_ticks, uint64_t *ret_ns)
{
        struct pair best = look_at_both();

        for (unsigned i = 1; i < PAIR_TRIES; i++) {
                struct pair next = look_at_both();

                if (next.took < best.took)
                        best = next;
        }
        *ret_ticks = best.ticks;
        *ret_ns = best.ns;
}

bool round_clock_has_ticks(void)
{
#if defined(__x86_64__)
        char name[16];

        return read_line_at(AT_FDCWD, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                       name, sizeof(name))
                       > 0
               && strcmp(name, "tsc") == 0;
#else
        return false;
#endif
}

void round_clock_open(struct round_clock *clock, bool ticks)
{
        *clock = (struct round_clock){.learning = ticks};
        if (ticks)
                take_pair(&clock->zero_ticks, &clock->zero_ns);
}

uint64_t round_clock_slow(struct round_clock *clock)
{
        uint64_t now = clock_nsec(CLOCK_MONOTONIC), ticks, ns;

        if (!clock->learning || now - clock->zero_ns < LEARN_NS)
                return now;
        take_pair(&ticks, &ns);
        clock->learning = false;
        if (ticks > clock->zero_ticks)
                clock->scale = (uint64_t)((double)(ns - clock->zero_ns) / (double)(ticks - clock->zero_ticks)
                                          * (double)(UINT64_C(1) << 32));
        clock->zero_ticks = ticks; /* time goes on from here */
        clock->zero_ns = ns;
        return ns;
}
