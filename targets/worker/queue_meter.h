/* What a queue counts about its requests, in memory that outlives the worker (proto/device_region.h).
 *
 * Everything here runs on the queue's thread. There is one look at the clock in each round of the loop, so a
 * request's time is that from the round in which it came to the round in which it was answered; one that is
 * answered in its first round has waited for nobody, and counts as 0. Stores are plain and whole: readers are
 * in another process and may see one number before another. -DUBLKD_TEST_WITHOUT_STATISTICS builds a worker
 * without all this, to measure what it costs. */
#pragma once

#include "targets/target.h"
#include "ublkd/proto/device_region.h"

#include <time.h>

struct queue_meter {
        struct queue_stats *stats;
        uint64_t now; /* CLOCK_MONOTONIC of this round, nanoseconds */
};

_Static_assert((int)STATS_READ == (int)IO_READ && (int)STATS_WRITE == (int)IO_WRITE
                       && (int)STATS_FLUSH == (int)IO_FLUSH && (int)STATS_DISCARD == (int)IO_DISCARD
                       && (int)STATS_WRITE_ZEROES == (int)IO_WRITE_ZEROES
                       && (int)STATS_OTHER == (int)_IO_OP_MAX,
        "an operation has its number in both enumerations");

static inline uint64_t queue_meter_clock(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline void queue_meter_add(uint64_t *counter, uint64_t amount)
{
        __atomic_store_n(counter, *counter + amount, __ATOMIC_RELAXED);
}

#ifdef UBLKD_TEST_WITHOUT_STATISTICS

static inline void queue_meter_open(
        struct queue_meter *meter _unused_, void *region _unused_, unsigned queue _unused_)
{
}

static inline void queue_meter_round(struct queue_meter *meter _unused_)
{
}

static inline uint64_t queue_meter_arrived(struct queue_meter *meter _unused_, enum io_op op _unused_)
{
        return 0;
}

static inline void queue_meter_ended(struct queue_meter *meter _unused_, const struct target_io *io _unused_,
        uint64_t arrived _unused_, int result _unused_)
{
}

#else

/* Goes on from where the worker before it died. region: from device_region_map(). */
static inline void queue_meter_open(struct queue_meter *meter, void *region, unsigned queue)
{
        meter->stats = device_region_queue_stats(region, queue);
        meter->now = queue_meter_clock();
        for (unsigned i = 0; i < _STATS_OP_MAX; i++)
                __atomic_store_n(&meter->stats->in_flight[i], 0, __ATOMIC_RELAXED);
}

/* A turn of the loop begins: once, after the wait. */
static inline void queue_meter_round(struct queue_meter *meter)
{
        meter->now = queue_meter_clock();
        queue_meter_add(&meter->stats->rounds, 1);
}

/* A request came. Returns when, for queue_meter_ended(). */
static inline uint64_t queue_meter_arrived(struct queue_meter *meter, enum io_op op)
{
        uint32_t *in_flight = &meter->stats->in_flight[op];

        __atomic_store_n(in_flight, *in_flight + 1, __ATOMIC_RELAXED);
        return meter->now;
}

/* It is answered with `result`: -errno, or success. */
static inline void queue_meter_ended(
        struct queue_meter *meter, const struct target_io *io, uint64_t arrived, int result)
{
        struct op_stats *stats = &meter->stats->ops[io->op];
        uint32_t *in_flight = &meter->stats->in_flight[io->op];
        uint64_t latency = meter->now - arrived;

        __atomic_store_n(in_flight, *in_flight - 1, __ATOMIC_RELAXED);
        queue_meter_add(&stats->latency[latency_bucket(latency)], 1);
        queue_meter_add(&stats->latency_sum, latency);
        if (__builtin_expect(result < 0, 0))
                queue_meter_add(&stats->errors, 1);
        else
                queue_meter_add(&stats->bytes, io->length);
}

#endif
