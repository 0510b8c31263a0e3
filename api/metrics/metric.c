/* SPDX-License-Identifier: MIT */
/* Print the Prometheus text format, version 0.0.4. */
#include "api/metrics/metric.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>

static const char *const type_names[] = {
        [METRIC_COUNTER] = "counter",
        [METRIC_GAUGE] = "gauge",
        [METRIC_HISTOGRAM] = "histogram",
};
static_assert(ARRAY_SIZE(type_names) == _METRIC_TYPE_MAX, "every type has a name");

void metric_family(FILE *out, const char *name, enum metric_type type, const char *help)
{
        fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type_names[type]);
}

void metric_sample(FILE *out, const char *name, double value, const char *labels, ...)
{
        va_list arguments;

        fputs(name, out);
        if (*labels) {
                fputc('{', out);
                va_start(arguments, labels);
                vfprintf(out, labels, arguments);
                va_end(arguments);
                fputc('}', out);
        }
        fprintf(out, " %.15g\n", value);
}

void metric_alone(FILE *out, const char *name, enum metric_type type, const char *help, double value)
{
        metric_family(out, name, type, help);
        metric_sample(out, name, value, "%s", "");
}

void metric_histogram(
        FILE *out, const char *name, const struct metric_histogram *histogram, const char *labels)
{
        const char *comma = *labels ? "," : "";
        uint64_t sum = 0;

        for (size_t i = 0; i < histogram->buckets; i++) {
                sum += histogram->counts[i];
                fprintf(out, "%s_bucket{%s%sle=\"%.9g\"} %" PRIu64 "\n", name, labels, comma,
                        histogram->bounds[i], sum);
        }
        fprintf(out, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", name, labels, comma, histogram->total);
        fprintf(out, *labels ? "%s_sum{%s} %.15g\n" : "%s_sum%s %.15g\n", name, labels, histogram->sum);
        fprintf(out, *labels ? "%s_count{%s} %" PRIu64 "\n" : "%s_count%s %" PRIu64 "\n", name, labels,
                histogram->total);
}
