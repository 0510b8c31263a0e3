/* SPDX-License-Identifier: MIT */
/* Histograms of latencies. */
#include "ublkctl/verbs/show/histogram.h"

#include "ublkctl/verbs/show/rate.h"

#include "ublkd/base/cleanup.h"

#include <stdint.h>

static double number_at(const cJSON *array, int index)
{
        const cJSON *item = cJSON_GetArrayItem(array, index);

        return cJSON_IsNumber(item) && item->valuedouble >= 0 ? item->valuedouble : 0;
}

/* Return the row of a latency: below 2 ns, 2 to 4 ns, … */
static size_t row_of(double nanoseconds)
{
        size_t row = 0;

        while (nanoseconds >= 2 && row + 1 < HISTOGRAM_ROWS_MAX) {
                nanoseconds /= 2;
                row++;
        }
        return row;
}

struct sums {
        double rows[HISTOGRAM_ROWS_MAX];
};

static void sum_up(void *userdata, double from, double to _unused_, double requests)
{
        struct sums *sums = userdata;

        sums->rows[row_of(from)] += requests;
}

void histogram_merge(const cJSON *before, const cJSON *after, struct histogram *ret)
{
        struct sums sums = {};
        size_t first = HISTOGRAM_ROWS_MAX, last = 0;

        histogram_each(before, after, sum_up, &sums);
        *ret = (struct histogram){};
        for (size_t i = 0; i < HISTOGRAM_ROWS_MAX; i++) {
                if (sums.rows[i] <= 0)
                        continue;
                first = i < first ? i : first;
                last = i;
        }
        for (size_t i = first; i <= last && i < HISTOGRAM_ROWS_MAX; i++) {
                ret->rows[ret->count++] = (struct histogram_row){.from = i ? (double)(UINT64_C(1) << i) : 0,
                        .to = (double)(UINT64_C(2) << i),
                        .requests = sums.rows[i]};
                ret->requests += sums.rows[i];
                ret->most = sums.rows[i] > ret->most ? sums.rows[i] : ret->most;
        }
}

static void add_bucket(void *userdata, double from, double to, double requests)
{
        const double numbers[] = {from, to, requests};

        cJSON_AddItemToArray(userdata, cJSON_CreateDoubleArray(numbers, ARRAY_SIZE(numbers)));
}

cJSON *histogram_difference(const cJSON *before, const cJSON *after)
{
        cJSON *difference = cJSON_CreateArray();

        if (difference)
                histogram_each(before, after, add_bucket, difference);
        return difference;
}

bool histogram_continues(const cJSON *before, const cJSON *after)
{
        const cJSON *old, *bucket = after ? after->child : NULL;

        cJSON_ArrayForEach (old, before) {
                while (bucket && number_at(bucket, 0) < number_at(old, 0))
                        bucket = bucket->next;
                if (number_at(old, 2) > 0
                        && (!bucket || number_at(bucket, 0) != number_at(old, 0)
                                || number_at(bucket, 2) < number_at(old, 2)))
                        return false;
        }
        return true;
}
