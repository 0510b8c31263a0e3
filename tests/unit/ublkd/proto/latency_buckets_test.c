/* SPDX-License-Identifier: MIT */
/* The buckets of a latency histogram: that they meet, and how wide they are. */
#include "ublkd/proto/latency_buckets.h"
#include "tests/unit/check.h"

static void test_bounds_belong_to_their_buckets(void)
{
        for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
                uint64_t start = latency_bucket_start(i), end = latency_bucket_start(i + 1);

                CHECK(start < end);
                CHECK_INT(latency_bucket(start), i);
                CHECK_INT(latency_bucket(end - 1), i);
        }
        CHECK_INT(latency_bucket_start(0), 0);
}

static void test_width_is_bounded(void)
{
        for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
                uint64_t start = latency_bucket_start(i), width = latency_bucket_start(i + 1) - start;

                CHECK(start < 1024 ? width == 64 : width * 16 <= start);
        }
}

static void test_extremes(void)
{
        CHECK_INT(latency_bucket(0), 0);
        CHECK_INT(latency_bucket(63), 0);
        CHECK_INT(latency_bucket(64), 1);
        CHECK_INT(latency_bucket(UINT64_MAX), LATENCY_BUCKETS - 1);
        CHECK(latency_bucket_start(LATENCY_BUCKETS)
                > UINT64_C(60000000000)); /* a minute has a bucket of its own */
        CHECK(latency_bucket(UINT64_C(60000000000)) < LATENCY_BUCKETS - 1);
}

int main(void)
{
        test_bounds_belong_to_their_buckets();
        test_width_is_bounded();
        test_extremes();
        return check_report();
}
