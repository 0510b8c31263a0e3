/* SPDX-License-Identifier: MIT */
/* What a queue holds back, in which order, and when it lets go; with a time of our own. */
#include "targets/worker/queue/throttle.h"
#include "tests/unit/check.h"

#include <sys/mman.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

enum { MANY = 8 };

struct test {
        void *region;
        struct throttle throttle;
        struct throttled requests[MANY];
};

static void open_test(struct test *test)
{
        int fd = memfd_create("region", MFD_CLOEXEC);

        CHECK_INT(device_region_format(fd, &(struct device_region_key){.queues = 2}), 0);
        CHECK_INT(device_region_map(fd, 2, &test->region), 0);
        close(fd);
        device_region_queue_stats(test->region, 1)->held = 7; /* of a worker that died */
        throttle_open(&test->throttle, test->region, 1);
        test->throttle.now = 1000 * 1000 * MS;
}

static void set(struct test *test, struct region_limits read, struct region_limits write)
{
        const struct region_limits limits[_REGION_DIRECTION_MAX] = {
                [REGION_READ] = read, [REGION_WRITE] = write};

        throttle_set(&test->throttle, limits, 2, 1 << 20);
}

static struct region_limits iops(uint64_t per_second)
{
        return (struct region_limits){.per_second = {[REGION_BUCKET_REQUESTS] = per_second},
                .burst = {[REGION_BUCKET_REQUESTS] = 1}};
}

static struct region_limits bytes(uint64_t per_second)
{
        return (struct region_limits){
                .per_second = {[REGION_BUCKET_BYTES] = per_second}, .burst = {[REGION_BUCKET_BYTES] = 4096}};
}

static uint64_t held(const struct test *test)
{
        CHECK_INT(device_region_queue_stats(test->region, 0)->held, 0); /* of another queue */
        return device_region_queue_stats(test->region, 1)->held;
}

static bool hold(struct test *test, unsigned request, enum io_op op, uint32_t length)
{
        return throttle_hold(&test->throttle, &test->requests[request], op, length);
}

/* The number of the request that may go on now, or -1. */
static int next(struct test *test)
{
        struct throttled *request = throttle_next(&test->throttle);

        return request ? (int)(request - test->requests) : -1;
}

static void test_no_limit(void)
{
        struct test test;

        open_test(&test);
        set(&test, (struct region_limits){}, (struct region_limits){});
        CHECK(!test.throttle.limited);
        CHECK(!hold(&test, 0, IO_READ, 4096));
        CHECK_INT(held(&test), 0);
        CHECK(throttle_wait(&test.throttle) == UINT64_MAX);
}

static void test_order_and_time(void)
{
        struct test test;

        open_test(&test);
        set(&test, iops(100), (struct region_limits){});
        CHECK(test.throttle.limited);
        CHECK(!hold(&test, 0, IO_READ, 4096)); /* the burst */
        CHECK(throttle_wait(&test.throttle) == UINT64_MAX);
        for (unsigned i = 1; i < 4; i++)
                CHECK(hold(&test, i, IO_READ, 4096));
        CHECK(!hold(&test, 4, IO_WRITE, 4096)); /* has no limit */
        CHECK_INT(next(&test), -1);
        for (int i = 1; i < 4; i++) {
                uint64_t wait = throttle_wait(&test.throttle);

                CHECK(wait > 9 * MS && wait <= 10 * MS);
                test.throttle.now += wait - 1;
                CHECK_INT(next(&test), -1);
                test.throttle.now += 2;
                CHECK_INT(held(&test), 4 - i);
                CHECK_INT(next(&test), i);
                CHECK_INT(held(&test), 3 - i);
                CHECK_INT(next(&test), -1);
        }
        CHECK(throttle_wait(&test.throttle) == UINT64_MAX);
}

static void test_flush_passes(void)
{
        struct test test;

        open_test(&test);
        set(&test, bytes(1024), bytes(1024));
        CHECK(!hold(&test, 0, IO_WRITE, 1 << 20)); /* larger than the burst */
        CHECK(hold(&test, 1, IO_WRITE, 512));
        CHECK(!hold(&test, 2, IO_FLUSH, 0));
        CHECK(!hold(&test, 3, _IO_OP_MAX, 0));
        CHECK(hold(&test, 4, IO_DISCARD, 1 << 30)); /* in order behind the write */
        CHECK_INT(throttle_wait(&test.throttle), THROTTLE_NAP_MAX);
}

/* Discards and write-zeroes move no bytes, but are requests. */
static void test_discards(void)
{
        struct test test;

        open_test(&test);
        set(&test, (struct region_limits){}, bytes(1024));
        for (unsigned i = 0; i < MANY; i++)
                CHECK(!hold(&test, i, i % 2 ? IO_DISCARD : IO_WRITE_ZEROES, 1 << 30));
        set(&test, (struct region_limits){}, iops(1));
        CHECK(!hold(&test, 0, IO_DISCARD, 1 << 30));
        CHECK(hold(&test, 1, IO_WRITE_ZEROES, 1 << 30));
}

/* What waits for hours goes on at once when the limit is lifted, in order, and what comes meanwhile behind
 * it. */
static void test_lifted(void)
{
        struct test test;

        open_test(&test);
        set(&test, bytes(1024), (struct region_limits){});
        CHECK(!hold(&test, 0, IO_READ, 1 << 20));
        CHECK(hold(&test, 1, IO_READ, 1 << 20));
        CHECK(hold(&test, 2, IO_READ, 1 << 20));
        set(&test, (struct region_limits){}, (struct region_limits){});
        CHECK(hold(&test, 3, IO_READ, 512));
        CHECK_INT(next(&test), 1);
        CHECK_INT(next(&test), 2);
        CHECK_INT(next(&test), 3);
        CHECK_INT(next(&test), -1);
        CHECK(!test.throttle.limited);
        CHECK(!hold(&test, 4, IO_READ, 512));
}

/* Other settings of the device change, and the limits are written again with them. */
static void test_set_again(void)
{
        struct test test;
        uint64_t wait;

        open_test(&test);
        set(&test, iops(100), (struct region_limits){});
        CHECK(!hold(&test, 0, IO_READ, 4096));
        CHECK(hold(&test, 1, IO_READ, 4096));
        wait = throttle_wait(&test.throttle);
        set(&test, iops(100), (struct region_limits){});
        CHECK_INT(next(&test), -1);
        CHECK(throttle_wait(&test.throttle) == wait); /* it does not pay twice */
}

/* A higher limit is not made to pay for what was read under a lower one. */
static void test_raised(void)
{
        struct test test;

        open_test(&test);
        set(&test, bytes(1024), (struct region_limits){});
        CHECK(!hold(&test, 0, IO_READ, 1 << 20)); /* a debt of 17 minutes */
        CHECK(hold(&test, 1, IO_READ, 4096));
        set(&test, bytes(1 << 30), (struct region_limits){});
        (void)next(&test);
        CHECK(throttle_wait(&test.throttle) < 10 * MS);
}

int main(void)
{
        test_no_limit();
        test_order_and_time();
        test_flush_passes();
        test_discards();
        test_lifted();
        test_set_again();
        test_raised();
        return check_report();
}
