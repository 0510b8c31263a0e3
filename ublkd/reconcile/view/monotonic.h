/* SPDX-License-Identifier: MIT */
/* The clock of all deadlines here. */
#pragma once

#include "ublkd/base/clock.h"

/* Return CLOCK_MONOTONIC in microseconds. */
static inline uint64_t monotonic_now(void)
{
        return clock_usec(CLOCK_MONOTONIC);
}
