/* SPDX-License-Identifier: MIT */
/* The clock of all deadlines here. */
#pragma once

#include "ublkd/base/clock.h"

/* Microseconds since some time in the past, which no change of the date moves. */
static inline uint64_t monotonic_now(void)
{
        return clock_usec(CLOCK_MONOTONIC);
}
