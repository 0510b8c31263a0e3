/* SPDX-License-Identifier: MIT */
/* The faults of a backing store that lost acknowledged data, as an administrator names them to accept the
 * loss: consent to what was seen is no consent to what happened since. Plain data; no I/O. */
#pragma once

#include <stdint.h>

/* The numbers of the faults that lose acknowledged data; 0: none. Times are CLOCK_REALTIME microseconds, 0:
 * not known; a number is used again by a disk that was made anew, with another time. */
struct device_faults {
        uint32_t flush, cut;
        uint64_t flush_at, cut_at;
};

enum { WRITE_ERRORS_TOKEN_SIZE = 96 };

/* Write the token of all faults in `faults` into `ret`; "": there are none. */
void write_errors_token(const struct device_faults *faults, char ret[static WRITE_ERRORS_TOKEN_SIZE]);
