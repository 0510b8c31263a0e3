/* SPDX-License-Identifier: MIT */
/* Holds a queue's requests back where the device has limits. */
#include "targets/worker/queue/throttle.h"

#include "ublkd/base/clock.h"

void throttle_open(struct throttle *throttle, void *region, unsigned queue)
{
        *throttle = (struct throttle){.held = &device_region_queue_stats(region, queue)->held};
        *throttle->held = 0; /* what a dead worker held comes again */
        for (unsigned i = 0; i < _REGION_DIRECTION_MAX; i++) {
                struct throttle_lane *lane = &throttle->lanes[i];

                lane->last = &lane->first;
                for (unsigned j = 0; j < _REGION_BUCKET_MAX; j++)
                        lane->buckets[j] =
                                device_region_bucket(region, (enum region_direction)i, (enum region_bucket)j);
        }
}

static bool is_same_rate(const struct token_rate *one, const struct token_rate *other)
{
        return !(one->cost < other->cost) && !(one->cost > other->cost) && one->burst == other->burst;
}

static void set_lane(struct throttle_lane *lane, const struct region_limits *limits, unsigned takers,
        const uint64_t largest[_REGION_BUCKET_MAX])
{
        lane->limited = false;
        for (unsigned i = 0; i < _REGION_BUCKET_MAX; i++) {
                struct token_rate rate = {};

                if (limits->per_second[i] != 0) {
                        rate = token_rate(limits->per_second[i], limits->burst[i], largest[i], takers);
                        lane->limited = true;
                }
                if (!is_same_rate(&rate, &lane->rates[i]))
                        lane->start = 0; /* else the first has paid already */
                lane->rates[i] = rate;
        }
}

void throttle_set(
        struct throttle *throttle, const struct region_limits *limits, unsigned takers, uint32_t largest)
{
        const uint64_t largest_of[_REGION_BUCKET_MAX] = {
                [REGION_BUCKET_REQUESTS] = 1,
                [REGION_BUCKET_BYTES] = largest,
        };

        throttle->changes++;
        throttle->limited = false;
        for (unsigned i = 0; i < _REGION_DIRECTION_MAX; i++) {
                set_lane(&throttle->lanes[i], &limits[i], takers, largest_of);
                throttle->limited |= throttle->lanes[i].limited || throttle->lanes[i].first;
        }
}

/* When the request may go on: its share of each bucket is taken. */
static uint64_t take(struct throttle_lane *lane, uint64_t now, uint32_t bytes)
{
        const uint64_t amounts[_REGION_BUCKET_MAX] = {
                [REGION_BUCKET_REQUESTS] = 1,
                [REGION_BUCKET_BYTES] = bytes,
        };
        uint64_t start = 1; /* 0 is "has not asked" */

        for (unsigned i = 0; i < _REGION_BUCKET_MAX; i++) {
                uint64_t at;

                if (lane->rates[i].burst == 0 || amounts[i] == 0)
                        continue;
                at = token_bucket_take(lane->buckets[i], &lane->rates[i], now, amounts[i]);
                if (at > start)
                        start = at;
        }
        return start;
}

/* NULL: what is not limited at all. */
static struct throttle_lane *lane_of(struct throttle *throttle, enum io_op op)
{
        static const struct {
                bool limited;
                enum region_direction direction;
        } directions[_IO_OP_MAX] = {
                [IO_READ] = {true, REGION_READ },
                [IO_WRITE] = {true, REGION_WRITE},
                [IO_DISCARD] = {true, REGION_WRITE},
                [IO_WRITE_ZEROES] = {true, REGION_WRITE},
        };

        return (unsigned)op < _IO_OP_MAX && directions[op].limited
                       ? &throttle->lanes[directions[op].direction]
                       : NULL;
}

bool throttle_hold(struct throttle *throttle, struct throttled *request, enum io_op op, uint32_t length)
{
        struct throttle_lane *lane = lane_of(throttle, op);
        uint64_t start = 0;

        if (!lane || (!lane->limited && !lane->first))
                return false;
        request->next = NULL;
        request->bytes = op == IO_READ || op == IO_WRITE ? length : 0;
        if (!lane->first) {
                start = take(lane, throttle->now, request->bytes);
                if (start <= throttle->now)
                        return false;
                lane->start = start;
        }
        *lane->last = request;
        lane->last = &request->next;
        ++*throttle->held;
        return true;
}

uint64_t throttle_take(struct throttle *throttle, enum io_op op, uint32_t length, uint64_t now)
{
        struct throttle_lane *lane = lane_of(throttle, op);

        return lane && lane->limited ? take(lane, now, length) : now;
}

void throttle_round(struct throttle *throttle)
{
        if (throttle->limited)
                throttle->now = clock_nsec(CLOCK_MONOTONIC);
}

static struct throttled *lane_next(struct throttle_lane *lane, uint64_t now)
{
        struct throttled *request = lane->first;

        if (!request)
                return NULL;
        if (lane->start == 0)
                lane->start = take(lane, now, request->bytes);
        if (lane->start > now)
                return NULL;
        lane->first = request->next;
        if (!lane->first)
                lane->last = &lane->first;
        lane->start = 0;
        return request;
}

static bool is_idle(const struct throttle *throttle)
{
        bool idle = true;

        for (unsigned i = 0; i < _REGION_DIRECTION_MAX; i++)
                idle = idle && !throttle->lanes[i].limited && !throttle->lanes[i].first;
        return idle;
}

struct throttled *throttle_next(struct throttle *throttle)
{
        for (unsigned i = 0; throttle->limited && i < _REGION_DIRECTION_MAX; i++) {
                struct throttled *request = lane_next(&throttle->lanes[i], throttle->now);

                if (request) {
                        --*throttle->held;
                        return request;
                }
        }
        throttle->limited = throttle->limited && !is_idle(throttle);
        return NULL;
}

uint64_t throttle_wait(struct throttle *throttle)
{
        uint64_t wait = UINT64_MAX;

        if (!throttle->limited)
                return wait;
        for (unsigned i = 0; i < _REGION_DIRECTION_MAX; i++) {
                const struct throttle_lane *lane = &throttle->lanes[i];
                uint64_t left;

                if (!lane->first)
                        continue;
                left = lane->start > throttle->now ? lane->start - throttle->now : 0;
                if (left > THROTTLE_NAP_MAX)
                        left = THROTTLE_NAP_MAX;
                if (left < wait)
                        wait = left;
        }
        return wait;
}
