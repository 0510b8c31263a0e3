/* SPDX-License-Identifier: MIT */
/* What a device's worker has counted, read out of the region that it shares (proto/device_region.h). The
 * worker is not asked and not disturbed, and need not live. */
#pragma once

#include "ublkd/base/cleanup.h"
#include "ublkd/proto/device_region.h"

struct op_counts {
        uint64_t requests; /* that have ended, in success or error */
        uint64_t bytes;    /* of those that succeeded */
        uint64_t errors;
        uint64_t in_flight;                /* in the worker now; of a dead one: when it died */
        uint64_t latency_sum;              /* nanoseconds, of all that have ended */
        uint64_t latency[LATENCY_BUCKETS]; /* requests; see latency_bucket_start() for the bounds */
};

struct queue_counts {
        uint64_t rounds;       /* turns of the queue's loop: requests per round tells how well it batches */
        uint64_t unregistered; /* requests that the worker had to register itself, see struct queue_stats */
        struct op_counts ops[_STATS_OP_MAX];
};

struct device_stats {
        unsigned queue_count;
        unsigned writes_waiting;   /* for room in the backing store */
        struct queue_counts total; /* of all queues */
        struct queue_counts queues[];
};

/* Reads the region that is open as `fd`. Each number is one that was there; numbers of one instant they are
 * only within a few microseconds. Never hurt by what a worker has done to the file. Does not block. 0 and new
 * statistics; -ENODATA: there are none (yet); -EPROTO: they are of a worker of another version, and come with
 * the next one; -ENOMEM; other -errno. */
int device_stats_read(int fd, struct device_stats **ret);
/* NULL is fine. Returns NULL. */
struct device_stats *device_stats_free(struct device_stats *stats);
DEFINE_CLEANUP(struct device_stats, device_stats_free);
#define _cleanup_device_stats_ _cleanup_(device_stats_free_pointer)

/* The time, in nanoseconds, below which `fraction` (0 to 1) of the requests ended; true within 3.2 %, see
 * proto/latency_buckets.h. 0 when there were none. */
uint64_t op_counts_percentile(const struct op_counts *counts, double fraction);
