/* SPDX-License-Identifier: MIT */
/* Histograms of latencies, with the fine buckets of the API merged into those that fit on a screen. Pure. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

enum { HISTOGRAM_ROWS_MAX = 48 };

/* Requests that took from `from` to less than `to` nanoseconds. A row is a power of two wide. */
struct histogram_row {
        double from, to, requests;
};

struct histogram {
        struct histogram_row rows[HISTOGRAM_ROWS_MAX]; /* without gaps, from the first request to the last */
        size_t count;
        double requests; /* of all rows */
        double most;     /* of one row */
};

/* Merge the histogram `after` ([from, to, requests] each, as in the API), without the requests of `before` (or
 * NULL). */
void histogram_merge(const cJSON *before, const cJSON *after, struct histogram *ret);

/* Return the fine buckets of `after` without the requests of `before`, which the caller deletes; NULL on ENOMEM. */
cJSON *histogram_difference(const cJSON *before, const cJSON *after);

/* Return whether `after` may continue the counters of `before`: no bucket has lost requests. */
bool histogram_continues(const cJSON *before, const cJSON *after);
