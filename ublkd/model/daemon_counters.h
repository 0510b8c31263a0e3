/* SPDX-License-Identifier: MIT */
/* What ublkd counts of its own work, for GET /metrics. Plain data; counts from the start of the process. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { DAEMON_STEPS_MAX = 32, TURN_BUCKETS = 10 };

/* Turns that took no longer than the bucket's bound, which is 0.5 ms for the first and four times as long
 * with each. */
#define TURN_BUCKET_FIRST_USEC UINT64_C(500)

struct daemon_counters {
        uint64_t turns; /* of devices, from asking the kernel until a step is done or none is due */
        uint64_t turn_usec;
        uint64_t turn_buckets[TURN_BUCKETS]; /* longer ones are in none */
        struct {
                const char *name; /* static */
                uint64_t done, failed;
        } steps[DAEMON_STEPS_MAX];
        size_t step_count;
        size_t waiting; /* devices that wait for their turn */
};
