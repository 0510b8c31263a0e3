/* SPDX-License-Identifier: MIT */
/* Compute what a device did between two readings of its counters. Pure. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* From two answers to GET /devices/NAME/stats, `seconds` apart. */
struct rate {
        double reads, writes, others;   /* requests per second; others: flush, discard, … */
        double read_bytes, write_bytes; /* per second */
        double errors;                  /* per second */
        double in_flight;               /* now */
        double read_p50, read_p99;      /* nanoseconds, of requests that ended in between; -1: none */
        double write_p50, write_p99;
};

/* Fill `ret`. If `before` is NULL, of another disk, or has higher counters than `after` (the disk was
 * recreated), everything in `after` counts. */
void rate_between(const cJSON *before, const cJSON *after, double seconds, struct rate *ret);

/* Call `each` for every bucket of `after` ([from, to, requests] each) that has more requests than in `before` (or
 * NULL), with the difference. */
void histogram_each(const cJSON *before, const cJSON *after,
        void (*each)(void *userdata, double from, double to, double requests), void *userdata);

/* Return the time, in nanoseconds, within which `fraction` of the requests of a histogram ([from, to,
 * requests] each) ended, without the requests in `before` (or NULL): the middle of the bucket. -1: no
 * requests. */
double histogram_percentile(const cJSON *before, const cJSON *after, double fraction);
