/* SPDX-License-Identifier: MIT */
/* Points of time, as the API writes them (RFC 3339 in UTC), for people. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TIME_SHOWN_SIZE = 40, AGE_SIZE = 48 };

/* Parse "2026-11-22T10:00:00.161Z" into seconds of CLOCK_REALTIME. False: `text` is not such a time; NULL is fine. */
bool time_parse(const char *text, int64_t *ret);

/* Format a time: "2026-11-22 11:00:00" in the local time zone, or (`local` false) the text as it is. A text that is
 * not a time is copied. */
void time_show(const char *text, bool local, char ret[static TIME_SHOWN_SIZE]);

/* Format a number of seconds with its two largest units: "12s", "3m20s", "5h", "40d"; less than 0 as "0s". */
void format_age(int64_t seconds, char ret[static AGE_SIZE]);

/* Format how long ago a time was, as format_age(); "-": `text` is not a time. */
void time_age(const char *text, char ret[static AGE_SIZE]);
