/* SPDX-License-Identifier: MIT */
/* Holds a queue's requests back where the device has limits. The buckets are shared with the device's other
 * queues and outlive the worker (proto/device_region.h); the rest is the queue thread's own.
 *
 * Reads wait behind reads and writes behind writes, in order; the first of each has taken its share of the
 * buckets and waits for its time. Flushes and unknown operations pass. */
#pragma once

#include "targets/target.h"
#include "targets/worker/queue/token_bucket.h"
#include "ublkd/proto/device_region.h"

/* In each request. */
struct throttled {
        struct throttled *next;
        uint32_t bytes;
};

struct throttle_lane {
        struct token_rate rates[_REGION_BUCKET_MAX]; /* cost 0: no limit */
        uint64_t *buckets[_REGION_BUCKET_MAX];
        struct throttled *first, **last;
        uint64_t start; /* when the first may go on; 0: it has not asked yet */
        bool limited;
};

struct throttle {
        struct throttle_lane lanes[_REGION_DIRECTION_MAX];
        uint64_t now;     /* CLOCK_MONOTONIC nanoseconds, of this round; kept only while there are limits */
        unsigned changes; /* how often limits were set */
        uint64_t *held;   /* in the region: requests that wait */
        bool limited;     /* by any limit, or something waits still */
};

/* Initialise a throttle without limits. region: from device_region_map(); queue: one of it, where what waits is
 * counted. */
void throttle_open(struct throttle *throttle, void *region, unsigned queue);
/* Set new limits for `takers` (the queues, and what else calls throttle_take()) and requests of up to `largest` bytes.
 * What waits asks again, unless its limits are what they were. */
void throttle_set(
        struct throttle *throttle, const struct region_limits *limits, unsigned takers, uint32_t largest);

/* Hold the request if it must wait: then return true, and throttle_next() returns it when its time has come.
 */
bool throttle_hold(struct throttle *throttle, struct throttled *request, enum io_op op, uint32_t length);

/* Take the share of what no request asks for: of `length` bytes, as a request of that operation. Return when it may go on:
 * at most `now` if at once; if `changes` is another one then, ask again. Both are nanoseconds of CLOCK_MONOTONIC. */
uint64_t throttle_take(struct throttle *throttle, enum io_op op, uint32_t length, uint64_t now);

/* Begin a round. */
void throttle_round(struct throttle *throttle);
/* Return the next request whose time has come, or NULL. */
struct throttled *throttle_next(struct throttle *throttle);

/* Return the nanoseconds until the next one's time comes, but no more than THROTTLE_NAP_MAX, because limits
 * may have changed by then; UINT64_MAX if none waits. */
uint64_t throttle_wait(struct throttle *throttle);

enum { THROTTLE_NAP_MAX = 50 * 1000 * 1000 /* nanoseconds */ };
