/* SPDX-License-Identifier: MIT */
/* What a device did between two looks at its counters. Pure. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* Two looks at GET /devices/NAME/stats, `seconds` apart. */
struct rate {
        double reads, writes, others;   /* requests per second; others: flush, discard, … */
        double read_bytes, write_bytes; /* per second */
        double errors;                  /* per second */
        double in_flight;               /* now */
        double read_p50, read_p99;      /* nanoseconds, of what ended between the looks; -1: nothing did */
        double write_p50, write_p99;
};

/* `before` may be NULL or of another disk, or have higher counters than `after` (the disk was made anew):
 * then everything in `after` happened since. */
void rate_between(const cJSON *before, const cJSON *after, double seconds, struct rate *ret);

/* The time below which `fraction` of the requests of a histogram ([from, to, requests] each) ended, without
 * those that `before` (or NULL) holds already; the middle of the bucket that it is in. -1: there are none. */
double histogram_percentile(const cJSON *before, const cJSON *after, double fraction);
