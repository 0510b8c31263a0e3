/* SPDX-License-Identifier: MIT */
/* Compute what a device did between two readings of its counters. */
#include "ublkctl/verbs/show/rate.h"

#include "ublkctl/text/json_path.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static double number_at(const cJSON *array, int index)
{
        const cJSON *item = cJSON_GetArrayItem(array, index);

        return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* Walk `before` along with `after`: both ascend, and counts of buckets never decrease. */
static double bucket_gain(const cJSON *bucket, const cJSON **before)
{
        double from = number_at(bucket, 0), count = number_at(bucket, 2);

        while (*before && number_at(*before, 0) < from)
                *before = (*before)->next;
        if (*before && number_at(*before, 0) == from)
                count -= number_at(*before, 2);
        return count > 0 ? count : 0;
}

void histogram_each(const cJSON *before, const cJSON *after,
        void (*each)(void *userdata, double from, double to, double requests), void *userdata)
{
        const cJSON *bucket, *old = before ? before->child : NULL;

        cJSON_ArrayForEach (bucket, after) {
                double gain = bucket_gain(bucket, &old);

                if (gain > 0)
                        each(userdata, number_at(bucket, 0), number_at(bucket, 1), gain);
        }
}

static double histogram_gain(const cJSON *before, const cJSON *after)
{
        const cJSON *bucket, *old = before ? before->child : NULL;
        double sum = 0;

        cJSON_ArrayForEach (bucket, after)
                sum += bucket_gain(bucket, &old);
        return sum;
}

double histogram_percentile(const cJSON *before, const cJSON *after, double fraction)
{
        double all = histogram_gain(before, after), sum = 0, middle = -1;
        const cJSON *bucket, *old = before ? before->child : NULL;

        if (all == 0)
                return -1;
        cJSON_ArrayForEach (bucket, after) {
                double gain = bucket_gain(bucket, &old);

                if (gain == 0)
                        continue;
                sum += gain;
                middle = (number_at(bucket, 0) + number_at(bucket, 1)) / 2;
                if (sum >= fraction * all)
                        break;
        }
        return middle;
}

static double counter(const cJSON *stats, const char *op, const char *name)
{
        char path[96];

        snprintf(path, sizeof(path), "total.ops.%s.%s", op, name);
        return json_number(stats, path, 0);
}

static const cJSON *histogram(const cJSON *stats, const char *op)
{
        char path[96];

        snprintf(path, sizeof(path), "total.ops.%s.latencyNs.histogram", op);
        return json_find(stats, path);
}

/* Return whether `after` continues the counters of `before`. */
static bool continues(const cJSON *before, const cJSON *after)
{
        static const char *const ops[] = {"read", "write", "flush", "discard", "writeZeroes", "other"};
        const char *old = json_text(before, "uid"), *new = json_text(after, "uid");

        if (!old || !new || strcmp(old, new) != 0)
                return false;
        for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
                if (counter(before, ops[i], "requests") > counter(after, ops[i], "requests"))
                        return false;
        return true;
}

static double gain(const cJSON *before, const cJSON *after, const char *op, const char *name)
{
        double difference = counter(after, op, name) - (before ? counter(before, op, name) : 0);

        return difference > 0 ? difference : 0;
}

void rate_between(const cJSON *before, const cJSON *after, double seconds, struct rate *ret)
{
        const cJSON *op;

        if (before && !continues(before, after))
                before = NULL;
        if (seconds <= 0)
                seconds = 1;
        *ret = (struct rate){
                .reads = gain(before, after, "read", "requests") / seconds,
                .writes = gain(before, after, "write", "requests") / seconds,
                .read_bytes = gain(before, after, "read", "bytes") / seconds,
                .write_bytes = gain(before, after, "write", "bytes") / seconds,
                .read_p50 = histogram_percentile(histogram(before, "read"), histogram(after, "read"), 0.5),
                .read_p99 = histogram_percentile(histogram(before, "read"), histogram(after, "read"), 0.99),
                .write_p50 = histogram_percentile(histogram(before, "write"), histogram(after, "write"), 0.5),
                .write_p99 =
                        histogram_percentile(histogram(before, "write"), histogram(after, "write"), 0.99),
        };
        cJSON_ArrayForEach (op, json_find(after, "total.ops")) {
                ret->errors += gain(before, after, op->string, "errors") / seconds;
                ret->in_flight += counter(after, op->string, "inFlight");
                if (strcmp(op->string, "read") != 0 && strcmp(op->string, "write") != 0)
                        ret->others += gain(before, after, op->string, "requests") / seconds;
        }
}
