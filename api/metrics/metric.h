/* SPDX-License-Identifier: MIT */
/* Print the Prometheus text format: a family first, then all of its samples. Labels must not need escapes:
 * names of devices, targets, phases and steps do not. Texts that clients or kernels choose freely must not be
 * labels. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stdint.h>
#include <stdio.h>

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, _METRIC_TYPE_MAX };

/* Begin a family: print its HELP and TYPE. Here and below, a failed write shows in ferror(out) only. */
void metric_family(FILE *out, const char *name, enum metric_type type, const char *help);
/* Print a sample. `labels` is a format that yields `a="b",c="d"`, or "". */
void metric_sample(FILE *out, const char *name, double value, const char *labels, ...) _printf_(4, 5);
/* Print a family of one sample without labels. */
void metric_alone(FILE *out, const char *name, enum metric_type type, const char *help, double value);

/* `counts` has one count for each bucket, not cumulated; `bounds` has their upper ends, ascending. `total`
 * includes samples beyond the last bucket. `labels` is a text, not a format. */
struct metric_histogram {
        const double *bounds;
        const uint64_t *counts;
        size_t buckets;
        uint64_t total;
        double sum;
};
void metric_histogram(
        FILE *out, const char *name, const struct metric_histogram *histogram, const char *labels);
