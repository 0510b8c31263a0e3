/* SPDX-License-Identifier: MIT */
/* Statistics, read while they are counted and after their worker went mad. */
#include "ublkd/model/device_stats.h"
#include "tests/unit/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

static const struct device_region_key key = {.queues = 2};

struct region {
        int fd;
        void *base;
};

static struct region make_region(void)
{
        struct region region = {.fd = memfd_create("region", MFD_CLOEXEC)};

        CHECK_INT(device_region_format(region.fd, &key), 0);
        CHECK_INT(device_region_map(region.fd, key.queues, &region.base), 0);
        return region;
}

static void count(struct region *region, unsigned queue, enum stats_op op, uint64_t ns, uint64_t times)
{
        struct op_stats *stats = &device_region_queue_stats(region->base, queue)->ops[op];

        stats->latency[latency_bucket(ns)] += times;
        stats->latency_sum += ns * times;
        stats->bytes += 4096 * times;
}

static void test_sums(void)
{
        struct region region = make_region();
        _cleanup_device_stats_ struct device_stats *stats = NULL;

        count(&region, 0, STATS_READ, 10000, 3);
        count(&region, 1, STATS_READ, 20000, 4);
        count(&region, 1, STATS_FLUSH, 0, 5);
        device_region_queue_stats(region.base, 1)->ops[STATS_READ].errors = 2;
        count(&region, 0, STATS_WRITE, 0, 5);
        device_region_queue_stats(region.base, 0)->ops[STATS_WRITE].begun = 11;
        device_region_queue_stats(region.base, 0)->rounds = 8;
        for (unsigned i = 0; i < 2; i++)
                device_region_queue_stats(region.base, i)->unregistered = 5 + i;
        device_region_queue_stats(region.base, 0)->nudges = 4;
        device_region_queue_stats(region.base, 1)->nudges = 5;
        device_region_queue_stats(region.base, 0)->held = 1;
        device_region_queue_stats(region.base, 1)->held = 2;
        if (!CHECK_INT(device_stats_read(region.fd, &stats), 0))
                return;
        CHECK_INT(stats->queue_count, 2);
        CHECK_INT(stats->queues[0].ops[STATS_READ].requests, 3);
        CHECK_INT(stats->queues[1].ops[STATS_READ].requests, 4);
        CHECK_INT(stats->total.ops[STATS_READ].requests, 7);
        CHECK_INT(stats->total.ops[STATS_READ].bytes, 7 * 4096);
        CHECK_INT(stats->total.ops[STATS_READ].errors, 2);
        CHECK_INT(stats->total.ops[STATS_READ].latency_sum, 110000);
        CHECK_INT(stats->total.ops[STATS_READ].latency[latency_bucket(20000)], 4);
        CHECK_INT(stats->total.ops[STATS_FLUSH].requests, 5);
        CHECK_INT(stats->total.ops[STATS_WRITE].in_flight, 6);
        CHECK_INT(stats->total.rounds, 8);
        CHECK_INT(stats->queues[1].unregistered, 6);
        CHECK_INT(stats->total.unregistered, 11);
        CHECK_INT(stats->queues[1].held, 2);
        CHECK_INT(stats->total.held, 3);
        CHECK_INT(stats->total.nudges, 9);
        close(region.fd);
}

static void test_percentiles(void)
{
        struct region region = make_region();
        _cleanup_device_stats_ struct device_stats *stats = NULL;
        const struct op_counts *reads;

        count(&region, 0, STATS_READ, 10000, 90);
        count(&region, 0, STATS_READ, 1000000, 9);
        count(&region, 0, STATS_READ, 50000000, 1);
        if (!CHECK_INT(device_stats_read(region.fd, &stats), 0))
                return;
        reads = &stats->total.ops[STATS_READ];
        CHECK(op_counts_percentile(reads, 0.5) > 9680 && op_counts_percentile(reads, 0.5) < 10320);
        CHECK(op_counts_percentile(reads, 0.95) > 968000 && op_counts_percentile(reads, 0.95) < 1032000);
        CHECK(op_counts_percentile(reads, 1) > 48400000 && op_counts_percentile(reads, 1) < 51600000);
        CHECK_INT(op_counts_percentile(&stats->total.ops[STATS_WRITE], 0.5), 0);
        close(region.fd);
}

struct counting {
        struct region region;
        atomic_bool stop;
};

static void *count_on(void *argument)
{
        struct counting *counting = argument;
        uint64_t *counter =
                &device_region_queue_stats(counting->region.base, 0)->ops[STATS_READ].latency[100];

        while (!atomic_load_explicit(&counting->stop, memory_order_relaxed))
                __atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
        return NULL;
}

/* What is read while it is counted only rises. */
static void test_read_while_counting(void)
{
        struct counting counting = {.region = make_region()};
        uint64_t before = 0;
        unsigned rises = 0;
        pthread_t thread;

        CHECK_INT(pthread_create(&thread, NULL, count_on, &counting), 0);
        /* Until it was seen to rise often: on a busy machine the thread may not have begun for a long time.
         */
        while (rises < 20) {
                _cleanup_device_stats_ struct device_stats *stats = NULL;

                if (!CHECK_INT(device_stats_read(counting.region.fd, &stats), 0))
                        break;
                if (!CHECK(stats->total.ops[STATS_READ].requests >= before))
                        break;
                rises += stats->total.ops[STATS_READ].requests > before;
                before = stats->total.ops[STATS_READ].requests;
        }
        atomic_store(&counting.stop, true);
        pthread_join(thread, NULL);
        close(counting.region.fd);
}

/* A broken worker writes anything into its region; the reader survives. */
static void test_survives_its_worker(void)
{
        struct region region = make_region();
        _cleanup_device_stats_ struct device_stats *stats = NULL;

        memset(device_region_queue_stats(region.base, 0), 0xff, sizeof(struct queue_stats));
        CHECK_INT(device_stats_read(region.fd, &stats), 0);
        CHECK_INT(ftruncate(region.fd, DEVICE_REGION_ALIGNMENT), 0);
        stats = device_stats_free(stats);
        CHECK_INT(device_stats_read(region.fd, &stats), -ENODATA);
        CHECK(!stats);
        close(region.fd);
}

int main(void)
{
        test_sums();
        test_percentiles();
        test_read_while_counting();
        test_survives_its_worker();
        return check_report();
}
