/* SPDX-License-Identifier: MIT */
/* Tests of rates and percentiles from two readings of the counters. */
#include "tests/unit/check.h"
#include "ublkctl/verbs/show/rate.h"
#include "ublkd/base/cleanup.h"

static cJSON *stats(const char *uid, unsigned reads, const char *histogram, unsigned flushes)
{
        char text[1024];

        snprintf(text, sizeof(text),
                "{\"uid\":\"%s\",\"total\":{\"ops\":{"
                "\"read\":{\"requests\":%u,\"bytes\":%u,\"errors\":%u,\"inFlight\":3,"
                "\"latencyNs\":{\"histogram\":%s}},"
                "\"write\":{\"requests\":0,\"bytes\":0,\"errors\":0,\"inFlight\":1,\"latencyNs\":{"
                "\"histogram\":[]}},"
                "\"flush\":{\"requests\":%u,\"bytes\":0,\"errors\":0,\"inFlight\":0}}}}",
                uid, reads, reads * 4096, reads / 10, histogram, flushes);
        return cJSON_Parse(text);
}

static void test_rates(void)
{
        cJSON *before = stats("u", 100, "[[100,200,90],[400,500,10]]", 5),
              *after = stats("u", 300, "[[100,200,190],[300,400,60],[400,500,50]]", 9),
              *other = stats("v", 300, "[[100,200,300]]", 0);
        struct rate rate;

        rate_between(before, after, 2, &rate);
        CHECK(rate.reads == 100 && rate.read_bytes == 409600 && rate.errors == 10);
        CHECK(rate.writes == 0 && rate.write_bytes == 0 && rate.write_p50 == -1 && rate.write_p99 == -1);
        CHECK(rate.others == 2 && rate.in_flight == 4);
        CHECK(rate.read_p50 == 150 && rate.read_p99 == 450);

        /* without a first reading, after another disk, after a reset of the counters: everything counts */
        rate_between(NULL, after, 1, &rate);
        CHECK(rate.reads == 300);
        rate_between(other, after, 1, &rate);
        CHECK(rate.reads == 300);
        rate_between(after, before, 1, &rate);
        CHECK(rate.reads == 100 && rate.read_p50 == 150);
        rate_between(after, after, 1, &rate);
        CHECK(rate.reads == 0 && rate.read_p50 == -1);
        rate_between(before, after, 0, &rate); /* the clock stood still */
        CHECK(rate.reads == 200);
        cJSON_Delete(before);
        cJSON_Delete(after);
        cJSON_Delete(other);
}

static void check_percentile(const char *before, const char *after, double fraction, double wanted)
{
        cJSON *old = cJSON_Parse(before), *new = cJSON_Parse(after);
        double got = histogram_percentile(old, new, fraction);

        if (!CHECK(got == wanted))
                fprintf(stderr, "    %s - %s at %g: %g\n", after, before, fraction, got);
        cJSON_Delete(old);
        cJSON_Delete(new);
}

int main(void)
{
        test_rates();
        check_percentile("[]", "[]", 0.5, -1);
        check_percentile("", "", 0.5, -1);
        check_percentile("[]", "[[0,2,1]]", 0.5, 1);
        check_percentile("[]", "[[0,2,99],[10,20,1]]", 0.99, 1);
        check_percentile("[]", "[[0,2,98],[10,20,2]]", 0.99, 15);
        check_percentile("[[0,2,98]]", "[[0,2,98],[10,20,2]]", 0.01, 15);
        check_percentile("[[10,20,2]]", "[[0,2,98],[10,20,2]]", 1, 1);
        check_percentile("[[0,2,5]]", "[[0,2,5]]", 0.5, -1);
        check_percentile("[[0,2,5]]", "[[0,2,3],[4,6,1]]", 0.5, 5); /* never negative */
        check_percentile("[]", "[[0,2]]", 0.5, -1);
        return check_report();
}
