/* SPDX-License-Identifier: MIT */
/* A clock of the loop that stands still while the loop waits for a CPU: for how long a request takes, whatever else the machine
 * does. Waits for a disk count. */
#pragma once

#include <stdint.h>

/* Open the clock of the calling thread. Return a descriptor, which the caller closes; -1: the kernel has none, and the clock
 * never stands still. */
int own_time_open(void);

/* A moment, on the clock of the thread that has opened it and on the wall. */
struct own_time {
        uint64_t own, wall; /* microseconds since some moment */
};

struct own_time own_time_now(int clock);

/* Return for how long other readers wait after a request, in microseconds: four times its own time, and as long as it has waited for
 * a CPU, but ten seconds at most. The clocks of a moment are not read at once, so the own time may seem to go back: that is 0. */
uint64_t own_time_pause(const struct own_time *began, const struct own_time *ended);
