/* SPDX-License-Identifier: MIT */
/* What ublkd counts of its own work, for GET /metrics. Plain data; counts from the start of the process. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { DAEMON_STEPS_MAX = 32, TURN_BUCKETS = 10 };

/* Bound of the first bucket; each bound is four times the one before. A bucket counts the turns that took no
 * longer than its bound. */
#define TURN_BUCKET_FIRST_USEC UINT64_C(500)

struct daemon_counters {
        uint64_t turns; /* of devices, from asking the kernel until a step is done or none is due */
        uint64_t turn_usec;
        uint64_t turn_buckets[TURN_BUCKETS]; /* turns above the last bound are in no bucket */
        struct {
                const char *name; /* static */
                uint64_t done, failed;
        } steps[DAEMON_STEPS_MAX];
        size_t step_count;
        size_t waiting; /* devices that wait for their turn */
};
