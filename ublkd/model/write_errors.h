/* SPDX-License-Identifier: MIT */
/* The token that names the faults of a backing store that lost acknowledged data. An administrator accepts the
 * loss with it: the consent does not include a later fault. Plain data; no I/O. */
#pragma once

#include <stdint.h>

/* The numbers of the faults that lost acknowledged data; 0: none. Times are CLOCK_REALTIME microseconds; 0:
 * unknown. A recreated disk counts from 1 again: then the time differs. */
struct device_faults {
        uint32_t flush, cut;
        uint64_t flush_at, cut_at;
};

enum { WRITE_ERRORS_TOKEN_SIZE = 96 };

/* Write the token of all faults in `faults` into `ret`; "" without faults. */
void write_errors_token(const struct device_faults *faults, char ret[static WRITE_ERRORS_TOKEN_SIZE]);
