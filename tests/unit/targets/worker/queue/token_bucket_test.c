/* SPDX-License-Identifier: MIT */
/* The token bucket, with a time of our own. */
#include "targets/worker/queue/token_bucket.h"
#include "tests/unit/check.h"

#define SECOND UINT64_C(1000000000)

static const uint64_t day = 24 * 3600 * SECOND; /* a machine that has been up for a while */

/* One taker that goes on as soon as it may, for requests of `amount` units: how many in ten seconds. */
static uint64_t passed(uint64_t per_second, uint64_t burst, uint64_t amount)
{
        struct token_rate rate = token_rate(per_second, burst, amount, 1);
        uint64_t bucket = 0, now = day, count = 0;

        for (;;) {
                uint64_t start = token_bucket_take(&bucket, &rate, now, amount);

                if (start > now)
                        now = start;
                if (now > day + 10 * SECOND)
                        return count;
                count++;
        }
}

static bool within(uint64_t got, uint64_t wanted, uint64_t off)
{
        return got + off >= wanted && got <= wanted + off;
}

/* The rate holds over the time, and a burst comes on top once. */
static void test_rates(void)
{
        static const uint64_t rates[] = {1, 3, 10, 999, 1000, 7777, 100000, 3333333};

        for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
                CHECK(within(passed(rates[i], 1, 1), 10 * rates[i], 1 + rates[i] / 1000));
                CHECK(within(passed(rates[i], 50, 1), 10 * rates[i] + 50, 1 + rates[i] / 1000));
        }
        CHECK(within(passed(1 << 20, 1 << 20, 4096), 10 * 256 + 256, 2));
        CHECK(within(passed(1000, 0, 1), 10 * 1000 + 100, 11)); /* a burst that was not given */
        CHECK(within(passed(5, 0, 1), 10 * 5 + 1, 1));
}

static void test_burst(void)
{
        struct token_rate rate = token_rate(10, 4, 1, 1);
        uint64_t bucket = 0;

        for (unsigned i = 0; i < 4; i++)
                CHECK(token_bucket_take(&bucket, &rate, day, 1) <= day);
        CHECK(within(token_bucket_take(&bucket, &rate, day, 1), day + SECOND / 10, 1));
        /* After a pause there is a burst again, however long it was, and no more. */
        for (unsigned i = 0; i < 4; i++)
                CHECK(token_bucket_take(&bucket, &rate, 2 * day, 1) <= 2 * day);
        CHECK(token_bucket_take(&bucket, &rate, 2 * day, 1) > 2 * day);
}

/* A request larger than the burst passes, and is paid for by those after it. */
static void test_larger_than_the_burst(void)
{
        struct token_rate rate = token_rate(1000, 10, 5000, 1);
        uint64_t bucket = 0;

        CHECK(token_bucket_take(&bucket, &rate, day, 5000) <= day);
        CHECK(within(token_bucket_take(&bucket, &rate, day, 1), day + 5 * SECOND - 9 * SECOND / 1000, 2));
}

/* Several takers share one bucket: together they get what it gives, each its part. */
static void test_shared(void)
{
        enum { TAKERS = 4 };
        struct token_rate rate = token_rate(1000, 1, 1, TAKERS);
        uint64_t bucket = 0, starts[TAKERS] = {}, counts[TAKERS] = {}, now = day;

        while (now < day + 10 * SECOND) {
                unsigned next = 0;

                for (unsigned i = 0; i < TAKERS; i++)
                        if (starts[i] < starts[next])
                                next = i;
                if (starts[next] > now)
                        now = starts[next];
                counts[next]++;
                starts[next] = token_bucket_take(&bucket, &rate, now, 1);
        }
        for (unsigned i = 0; i < TAKERS; i++)
                CHECK(within(counts[i], 2500, 3));
}

/* A bucket that claims to be in debt for years, by a mistake or under another limit, no longer
 * counts soon. */
static void test_debt_is_bounded(void)
{
        struct token_rate rate = token_rate(100, 10, 1, 2);
        uint64_t bucket = UINT64_MAX / 2;

        CHECK(token_bucket_take(&bucket, &rate, day, 1) <= day + SECOND / 2);
        CHECK(token_bucket_take(&bucket, &rate, day + SECOND, 1) <= day + SECOND);
}

static void test_extremes(void)
{
        struct token_rate slow = token_rate(1, 1, UINT32_MAX, 4096),
                          fast = token_rate(1099511627776, 0, 1, 1);
        uint64_t bucket = 0;

        CHECK(token_bucket_take(&bucket, &slow, day, UINT32_MAX) <= day);
        CHECK(token_bucket_take(&bucket, &slow, day, UINT32_MAX) > day + 100000 * SECOND);
        bucket = 0;
        for (unsigned i = 0; i < 1000; i++)
                CHECK(token_bucket_take(&bucket, &fast, day + i, 1) <= day + i);
}

int main(void)
{
        test_rates();
        test_burst();
        test_larger_than_the_burst();
        test_shared();
        test_debt_is_bounded();
        test_extremes();
        return check_report();
}
