/* SPDX-License-Identifier: MIT */
/* Points of time, as text and in JSON. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

enum { TIME_TEXT_SIZE = 32 };

/* Format `usec` (CLOCK_REALTIME, microseconds) as RFC 3339 in UTC with milliseconds:
 * 2026-11-22T10:00:00.000Z. Return false if it does not have a year; `ret` is "" then. */
bool time_format(uint64_t usec, char ret[static TIME_TEXT_SIZE]);

/* Add `usec` (CLOCK_REALTIME, microseconds) as RFC 3339 text in UTC with milliseconds; null for 0, "never".
 * Return false on ENOMEM. */
bool json_add_time(cJSON *object, const char *name, uint64_t usec);
