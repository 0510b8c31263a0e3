/* SPDX-License-Identifier: MIT */
/* The Prometheus text format. A family first, then all of its samples. No text that users or kernels chose
 * freely goes into a label: names of devices, targets, phases and steps need no escapes. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stdint.h>
#include <stdio.h>

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, _METRIC_TYPE_MAX };

/* Begins a family: its HELP and TYPE. What cannot be written is left to ferror(out), here and below. */
void metric_family(FILE *out, const char *name, enum metric_type type, const char *help);
/* `labels`: a format that comes to `a="b",c="d"`, or "". */
void metric_sample(FILE *out, const char *name, double value, const char *labels, ...) _printf_(4, 5);
/* A family of one sample without labels. */
void metric_alone(FILE *out, const char *name, enum metric_type type, const char *help, double value);

/* `counts` are of each bucket alone, `bounds` their upper ends (ascending); `total` counts what is in none as
 * well. `labels` is text. */
struct metric_histogram {
        const double *bounds;
        const uint64_t *counts;
        size_t buckets;
        uint64_t total;
        double sum;
};
void metric_histogram(
        FILE *out, const char *name, const struct metric_histogram *histogram, const char *labels);
