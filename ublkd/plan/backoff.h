/* SPDX-License-Identifier: MIT */
/* PURE: failures so far → how long to wait before the next try. Microseconds. */
#pragma once

#include <stdint.h>

/* Return the pause before the next try after `failures` in a row (0: none): the first retry is immediate,
 * then 100 ms, doubling up to 30 s. */
uint64_t backoff_delay(unsigned failures);

/* Return the pause for a START_USER_RECOVERY that is EBUSY until a dead worker's last reference is gone,
 * which is a matter of milliseconds (bench/RESULTS.md): four times 1 ms, four times 2, 4, 8 … up to 100 ms.
 * `failures` in a row, at least 1. */
uint64_t backoff_busy(unsigned failures);

/* Return the pause before the next look at something that the kernel will not report: half of the time that
 * it has lasted, at least 2 ms, at most 1 s. */
uint64_t backoff_poll(uint64_t elapsed);
