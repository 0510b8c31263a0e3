/* SPDX-License-Identifier: MIT */
/* What a queue counts about its requests. The rounds' times are set here, but for those of the clock itself.
 */
#include "targets/worker/queue/queue_meter.h"
#include "tests/unit/check.h"

#include <sys/mman.h>
#include <unistd.h>

enum { QUEUES = 2, QUEUE = 1 };

static struct shared make_shared(void)
{
        struct shared shared = {.pagemap = -1};
        int fd = memfd_create("region", MFD_CLOEXEC);

        CHECK_INT(device_region_format(fd, &(struct device_region_key){.queues = QUEUES}), 0);
        CHECK_INT(device_region_map(fd, QUEUES, &shared.region), 0);
        (void)close(fd);
        return shared;
}

static void check_untouched(const struct op_stats *stats)
{
        static const struct op_stats none;

        CHECK(memcmp(stats, &none, sizeof(none)) == 0);
}

static void test_counts_of_each_operation(void)
{
        struct shared shared = make_shared();
        struct queue_meter meter = {};
        struct request_meter read, write, failed;

        queue_meter_open(&meter, &shared, QUEUE);
        const struct op_stats *ops = meter.stats->ops;

        meter.now = 1000000;
        queue_meter_arrived(&meter, &read, IO_READ);
        meter.now = 1005000;
        queue_meter_arrived(&meter, &write, IO_WRITE);
        queue_meter_arrived(&meter, &failed, IO_WRITE);
        CHECK_INT(ops[STATS_WRITE].begun, 2);
        CHECK_INT(ops[STATS_WRITE].latency_sum + ops[STATS_WRITE].bytes + ops[STATS_WRITE].errors, 0);
        meter.now = 1025000;
        queue_meter_ended(&meter, &read, 4096, 4096);
        queue_meter_ended(&meter, &write, 512, 0);
        queue_meter_ended(&meter, &failed, 8192, -5);
        CHECK_INT(ops[STATS_READ].begun, 1);
        CHECK_INT(ops[STATS_READ].bytes, 4096);
        CHECK_INT(ops[STATS_READ].errors, 0);
        CHECK_INT(ops[STATS_READ].latency_sum, 25000);
        CHECK_INT(ops[STATS_READ].latency[latency_bucket(25000)], 1);
        CHECK_INT(ops[STATS_WRITE].begun, 2);
        CHECK_INT(ops[STATS_WRITE].bytes, 512); /* what failed moved nothing */
        CHECK_INT(ops[STATS_WRITE].errors, 1);
        CHECK_INT(ops[STATS_WRITE].latency_sum, 40000); /* and took its time */
        CHECK_INT(ops[STATS_WRITE].latency[latency_bucket(20000)], 2);
        check_untouched(&ops[STATS_FLUSH]);
        check_untouched(&ops[STATS_OTHER]);
        check_untouched(&device_region_queue_stats(shared.region, 0)->ops[STATS_READ]);
}

/* The bucket that is remembered is the last latency's, and no other's. */
static void test_buckets(void)
{
        static const uint64_t latencies[] = {0, 63, 64, 64, 1 << 20, 64, UINT64_C(1) << 40, 0};
        struct shared shared = make_shared();
        struct queue_meter meter = {};
        uint64_t sum = 0, wanted[LATENCY_BUCKETS] = {};

        queue_meter_open(&meter, &shared, QUEUE);
        for (size_t i = 0; i < ARRAY_SIZE(latencies); i++) {
                struct request_meter request;

                meter.now = 5000;
                queue_meter_arrived(&meter, &request, IO_DISCARD);
                queue_meter_succeeded(&meter, &request, 0, meter.now + latencies[i]);
                wanted[latency_bucket(latencies[i])]++;
                sum += latencies[i];
        }
        CHECK_INT(meter.stats->ops[STATS_DISCARD].latency_sum, sum);
        CHECK(memcmp(meter.stats->ops[STATS_DISCARD].latency, wanted, sizeof(wanted)) == 0);
        CHECK_INT(wanted[LATENCY_BUCKETS - 1], 1);
}

static void test_answered_in_the_first_round(void)
{
        struct shared shared = make_shared();
        struct queue_meter meter = {};

        queue_meter_open(&meter, &shared, QUEUE);
        const struct op_stats *read = &meter.stats->ops[STATS_READ], *write = &meter.stats->ops[STATS_WRITE];

        queue_meter_at_once(&meter, IO_WRITE, 512);
        queue_meter_at_once(&meter, IO_READ, 4096);
        queue_meter_at_once(&meter, IO_READ, 4096);
        CHECK_INT(read->begun, 2);
        CHECK_INT(read->latency[0], 2);
        CHECK_INT(read->bytes, 8192);
        CHECK_INT(read->errors + read->latency_sum, 0);
        CHECK_INT(write->begun, 1);
        CHECK_INT(write->latency[0], 1);
        CHECK_INT(write->bytes, 512);
        CHECK_INT(write->errors + write->latency_sum, 0);
}

/* What the dead worker had in hand comes again, and counts once. */
static void test_the_next_worker_continues(void)
{
        struct shared shared = make_shared();
        struct queue_meter dead = {}, next = {};
        struct request_meter request, lost;
        const struct op_stats *write = &device_region_queue_stats(shared.region, QUEUE)->ops[STATS_WRITE];

        queue_meter_open(&dead, &shared, QUEUE);
        queue_meter_round(&dead);
        queue_meter_arrived(&dead, &request, IO_WRITE);
        queue_meter_arrived(&dead, &lost, IO_WRITE);
        queue_meter_succeeded(&dead, &request, 512, dead.now + 3000);
        queue_meter_unregistered(&dead);
        CHECK_INT(write->begun, 2);
        queue_meter_open(&next, &shared, QUEUE);
        CHECK_INT(write->begun, 1);
        queue_meter_arrived(&next, &lost, IO_WRITE);
        queue_meter_succeeded(&next, &lost, 512, next.now + 100000);
        CHECK_INT(write->begun, 2);
        CHECK_INT(write->bytes, 1024);
        CHECK_INT(write->latency_sum, 103000);
        CHECK_INT(write->latency[latency_bucket(3000)], 1);
        CHECK_INT(write->latency[latency_bucket(100000)], 1);
        queue_meter_unregistered(&next);
        CHECK_INT(next.stats->rounds, 1); /* of both workers */
        CHECK_INT(next.stats->unregistered, 2);
}

static void test_a_round_looks_at_the_clock_once(void)
{
        struct shared shared = make_shared();
        struct queue_meter meter = {};
        uint64_t first;

        queue_meter_open(&meter, &shared, QUEUE);
        first = meter.now;
        CHECK(queue_meter_look(&meter) >= first);
        CHECK_INT(meter.now, first);
        CHECK_INT(meter.stats->rounds, 0);
        while (meter.now == first)
                queue_meter_round(&meter);
        CHECK(meter.now > first);
        CHECK(meter.stats->rounds >= 1);
        CHECK_INT(device_region_queue_stats(shared.region, 0)->rounds, 0);
}

/* As after a suspend to memory: what was in flight over it counts as no time, and nothing is added to the
 * sum. What comes later counts as ever. */
static void test_a_counter_that_restarts(void)
{
        struct shared shared = make_shared();
        struct queue_meter meter = {};
        struct request_meter over, later;

        queue_meter_open(&meter, &shared, QUEUE);
        const struct op_stats *read = &meter.stats->ops[STATS_READ];

        meter.clock = (struct round_clock){
                .scale = (UINT64_C(1) << 32) / 3, /* 3 GHz */
                .zero_ticks = round_clock_ticks(),
                .zero_ns = UINT64_C(200) * 1000 * 1000 * 1000,
        };
        queue_meter_round(&meter);
        queue_meter_arrived(&meter, &over, IO_READ);
        meter.clock.zero_ticks +=
                UINT64_C(100) * 1000 * 1000 * 1000; /* the same as taking it from the counter */
        queue_meter_round(&meter);
        CHECK(meter.now < over.arrived);
        queue_meter_succeeded(&meter, &over, 512, meter.now);
        CHECK_INT(read->latency[0], 1);
        CHECK_INT(read->latency_sum, 0);
        queue_meter_arrived(&meter, &later, IO_READ);
        queue_meter_succeeded(&meter, &later, 512, meter.now + 5000);
        CHECK_INT(read->latency[latency_bucket(5000)], 1);
        CHECK_INT(read->latency_sum, 5000);
}

int main(void)
{
        test_counts_of_each_operation();
        test_buckets();
        test_answered_in_the_first_round();
        test_the_next_worker_continues();
        test_a_round_looks_at_the_clock_once();
        test_a_counter_that_restarts();
        return check_report();
}
