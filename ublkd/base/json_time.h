/* SPDX-License-Identifier: MIT */
/* Points of time in JSON. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* Adds `usec` (CLOCK_REALTIME, microseconds) as RFC 3339 text in UTC with milliseconds; null for 0, "never".
 * False: out of memory. */
bool json_add_time(cJSON *object, const char *name, uint64_t usec);
