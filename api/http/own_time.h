/* SPDX-License-Identifier: MIT */
/* A clock of the loop that stands still while the loop waits for a CPU: for how long a request takes, whatever else the machine
 * does. Waits for a disk count. */
#pragma once

#include <stdint.h>

/* Open the clock of the calling thread. Return a descriptor, which the caller closes; -1: the kernel has none, and the clock
 * never stands still. */
int own_time_open(void);

/* Return its time in microseconds, since some moment. Of the thread that has opened it. */
uint64_t own_time_now(int clock);
