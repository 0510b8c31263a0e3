/* SPDX-License-Identifier: MIT */
/* What a queue counts about its requests, in memory that outlives the worker (proto/device_region.h).
 *
 * Everything here runs on the queue's thread. There is one look at the clock in each round of the loop, so a
 * request's time is that from the round in which it came to the round in which it was answered. One that is
 * answered in its first round has not waited, and counts as 0, unless it took its time in that round:
 * queue_meter_look(). Stores are plain and whole: readers are in another process and may see one number
 * before another. -DUBLKD_TEST_WITHOUT_STATISTICS builds a worker without all this, to measure what it costs.
 */
#pragma once

#include "targets/target.h"
#include "targets/worker/os/round_clock.h"
#include "targets/worker/queue/shared.h"
#include "ublkd/proto/device_region.h"

struct queue_meter {
        struct queue_stats *stats;
        struct op_stats *ops[_STATS_OP_MAX]; /* within them */
        uint64_t now;                        /* of this round, nanoseconds */
        struct round_clock clock;
        /* Requests often come together and go together: the last one's latency, and its bucket. */
        int64_t latency;
        unsigned bucket;
};

/* What a request carries from its arrival to its end. */
struct request_meter {
        struct op_stats *stats;
        uint64_t arrived;
};

_Static_assert((int)STATS_READ == (int)IO_READ && (int)STATS_WRITE == (int)IO_WRITE
                       && (int)STATS_FLUSH == (int)IO_FLUSH && (int)STATS_DISCARD == (int)IO_DISCARD
                       && (int)STATS_WRITE_ZEROES == (int)IO_WRITE_ZEROES
                       && (int)STATS_OTHER == (int)_IO_OP_MAX,
        "an operation has its number in both enumerations");

#ifndef UBLKD_TEST_WITHOUT_STATISTICS

/* Begin to count, from where the worker before it died. */
static inline void queue_meter_open(struct queue_meter *meter, const struct shared *shared, unsigned queue)
{
        meter->stats = device_region_queue_stats(shared->region, queue);
        round_clock_open(&meter->clock, shared->ticks);
        meter->now = round_clock_now(&meter->clock);
        for (unsigned i = 0; i < _STATS_OP_MAX; i++) {
                struct op_stats *stats = meter->ops[i] = &meter->stats->ops[i];

                stats->begun = 0; /* what that one had begun and not ended begins again */
                for (unsigned j = 0; j < LATENCY_BUCKETS; j++)
                        stats->begun += stats->latency[j];
        }
}

/* Begin a turn of the loop: once, after the wait. */
static inline void queue_meter_round(struct queue_meter *meter)
{
        meter->now = round_clock_now(&meter->clock);
        meter->stats->rounds++;
}

/* Return the time within a round: for a request that took its time in it. */
static inline uint64_t queue_meter_look(struct queue_meter *meter)
{
        return round_clock_now(&meter->clock);
}

/* Count a request that came. */
static inline void queue_meter_arrived(
        struct queue_meter *meter, struct request_meter *request, enum io_op op)
{
        request->stats = meter->ops[op];
        request->stats->begun++;
        request->arrived = meter->now;
}

/* Count a request that came, and whose `length` bytes are done in the same round. */
static inline void queue_meter_at_once(const struct queue_meter *meter, enum io_op op, uint32_t length)
{
        struct op_stats *stats = meter->ops[op];

        stats->begun++;
        stats->latency[0]++;
        stats->bytes += length;
}

/* Count a request whose pages the driver was to register and did not. */
static inline void queue_meter_unregistered(struct queue_meter *meter)
{
        meter->stats->unregistered++;
}

/* Count a nudge of the kernel's threads. */
static inline void queue_meter_nudged(struct queue_meter *meter)
{
        meter->stats->nudges++;
}

/* Find the bucket of a latency. It is less than 0 when the CPU's counter was learnt, or has lost its way. */
static inline void queue_meter_find_bucket(struct queue_meter *meter, int64_t latency)
{
        meter->latency = latency > 0 ? latency : 0;
        meter->bucket = latency_bucket((uint64_t)meter->latency);
}

/* Count the latency of a request that is answered, with success or failure. */
static inline void queue_meter_took(
        struct queue_meter *meter, const struct request_meter *request, uint64_t now)
{
        int64_t latency = (int64_t)(now - request->arrived);

        if (latency != meter->latency)
                queue_meter_find_bucket(meter, latency);
        request->stats->latency[meter->bucket]++;
        request->stats->latency_sum += (uint64_t)meter->latency;
}

/* Return how many requests have come and are not answered. */
static inline uint64_t queue_meter_under_way(const struct queue_meter *meter)
{
        uint64_t count = 0;

        for (unsigned i = 0; i < _STATS_OP_MAX; i++) {
                count += meter->ops[i]->begun;
                for (unsigned j = 0; j < LATENCY_BUCKETS; j++)
                        count -= meter->ops[i]->latency[j];
        }
        return count;
}

/* Count a request that is answered, and whose `length` bytes are done. now: meter->now, or
 * queue_meter_look(). */
static inline void queue_meter_succeeded(
        struct queue_meter *meter, const struct request_meter *request, uint32_t length, uint64_t now)
{
        queue_meter_took(meter, request, now);
        request->stats->bytes += length;
}

/* Count a request that is answered with `result`: -errno, or success. */
static inline void queue_meter_ended(
        struct queue_meter *meter, const struct request_meter *request, uint32_t length, int result)
{
        if (__builtin_expect(result >= 0, 1)) {
                queue_meter_succeeded(meter, request, length, meter->now);
        } else {
                queue_meter_took(meter, request, meter->now);
                request->stats->errors++;
        }
}

#else

static inline void queue_meter_open(
        struct queue_meter *meter _unused_, const struct shared *shared _unused_, unsigned queue _unused_)
{
}

static inline void queue_meter_round(struct queue_meter *meter _unused_)
{
}

static inline void queue_meter_arrived(
        struct queue_meter *meter _unused_, struct request_meter *request _unused_, enum io_op op _unused_)
{
}

static inline void queue_meter_at_once(
        const struct queue_meter *meter _unused_, enum io_op op _unused_, uint32_t length _unused_)
{
}

static inline void queue_meter_unregistered(struct queue_meter *meter _unused_)
{
}

static inline void queue_meter_nudged(struct queue_meter *meter _unused_)
{
}

static inline uint64_t queue_meter_look(struct queue_meter *meter _unused_)
{
        return 0;
}

/* It is not known: such a worker does not leave, and is killed. */
static inline uint64_t queue_meter_under_way(const struct queue_meter *meter _unused_)
{
        return UINT64_MAX / 2;
}

static inline void queue_meter_succeeded(struct queue_meter *meter _unused_,
        const struct request_meter *request _unused_, uint32_t length _unused_, uint64_t now _unused_)
{
}

static inline void queue_meter_ended(struct queue_meter *meter _unused_,
        const struct request_meter *request _unused_, uint32_t length _unused_, int result _unused_)
{
}

#endif
