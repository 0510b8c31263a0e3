/* SPDX-License-Identifier: MIT */
/* The statistics of a device, read out of the region that its worker shares (proto/device_region.h). Reading
 * needs no message to the worker, does not disturb it, and works after its death. */
#pragma once

#include "ublkd/base/cleanup.h"
#include "ublkd/proto/device_region.h"

struct op_counts {
        uint64_t requests; /* that have ended, successful or failed */
        uint64_t bytes;    /* of the successful requests */
        uint64_t errors;
        uint64_t in_flight;                /* in the worker now, or when the worker died */
        uint64_t latency_sum;              /* nanoseconds, of all that have ended */
        uint64_t latency[LATENCY_BUCKETS]; /* requests; see latency_bucket_start() for the bounds */
};

struct queue_counts {
        uint64_t rounds;       /* turns of the queue's loop: requests per round show how well it batches */
        uint64_t unregistered; /* requests that the worker had to register itself, see struct queue_stats */
        uint64_t held;         /* requests in flight that wait for limits */
        uint64_t nudges; /* how often the worker has woken the kernel's threads, see struct queue_stats */
        struct op_counts ops[_STATS_OP_MAX];
};

struct device_stats {
        unsigned queue_count;
        unsigned writes_waiting;                           /* for room in the backing store */
        uint64_t errors[_STATS_OP_MAX][_REGION_ERRNO_MAX]; /* requests that failed, by error */
        uint64_t of_target[REGION_TARGET_COUNTS]; /* what the target counts: target_desc.show_counts() */
        struct queue_counts total;                /* of all queues */
        struct queue_counts queues[];
};

/* Read the region that is open as `fd`, without blocking. Each number is exact, but different numbers may be
 * some microseconds apart. Bounds do not depend on what a worker wrote into the file. Return 0 and new
 * statistics; -ENODATA: there are none (yet); -EPROTO: a worker of another version wrote them, and the next
 * worker will write readable ones; -ENOMEM; other -errno. */
int device_stats_read(int fd, struct device_stats **ret);
/* Free statistics. NULL is fine. Return NULL. */
struct device_stats *device_stats_free(struct device_stats *stats);
DEFINE_CLEANUP(struct device_stats, device_stats_free);
#define _cleanup_device_stats_ _cleanup_(device_stats_free_pointer)

/* Return the latency in nanoseconds below which `fraction` (0 to 1) of the requests ended, exact within 3.2 %
 * (proto/latency_buckets.h); 0 without requests. */
uint64_t op_counts_percentile(const struct op_counts *counts, double fraction);
