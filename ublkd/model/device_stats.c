/* SPDX-License-Identifier: MIT */
/* Reads the statistics of a worker out of the region of its device.
 *
 * The worker continues to count while ublkd reads. The worker stores whole words, but the kernel may copy them
 * byte by byte, from low to high. If a counter carries meanwhile, the copy may be too large, never too small.
 * So everything is read twice: counters only rise, and a first copy that is larger than the second one was
 * torn. */
#include "ublkd/model/device_stats.h"

#include "ublkd/proto/region_errors.h"
#include "ublkd/proto/region_space.h"
#include "ublkd/proto/region_target.h"

#include <stdbool.h>

enum { TRIES = 8 };

static int read_all(int fd, void *buffer, size_t size, uint64_t offset)
{
        ssize_t n = pread(fd, buffer, size, (off_t)offset);

        if (n < 0)
                return -errno;
        return (size_t)n == size ? 0 : -ENODATA; /* another process has truncated the file */
}

static bool op_has_risen(const struct op_stats *before, const struct op_stats *after)
{
        bool risen = before->bytes <= after->bytes && before->errors <= after->errors
                     && before->latency_sum <= after->latency_sum;

        for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
                risen &= before->latency[i] <= after->latency[i];
        return risen;
}

static bool has_risen(const struct queue_stats *before, const struct queue_stats *after)
{
        bool risen = before->rounds <= after->rounds && before->unregistered <= after->unregistered
                     && before->nudges <= after->nudges;

        for (unsigned i = 0; i < _STATS_OP_MAX; i++)
                risen &= op_has_risen(&before->ops[i], &after->ops[i]);
        return risen;
}

/* Read the statistics of one queue. scratch: room for two copies; the first one is the result. */
static int read_queue(int fd, uint64_t offset, struct queue_stats scratch[2])
{
        int r = read_all(fd, &scratch[0], sizeof(scratch[0]), offset);

        for (unsigned i = 0; r >= 0 && i < TRIES; i++) {
                r = read_all(fd, &scratch[1], sizeof(scratch[1]), offset);
                if (r < 0 || has_risen(&scratch[0], &scratch[1]))
                        break;
                scratch[0] = scratch[1];
        }
        return r; /* a broken worker may never stop changing it; it is only shown */
}

static void take_op(const struct op_stats *from, struct op_counts *to)
{
        *to = (struct op_counts){
                .bytes = from->bytes,
                .errors = from->errors,
                .latency_sum = from->latency_sum,
        };
        for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
                to->latency[i] = from->latency[i];
                to->requests += from->latency[i];
        }
        if (from->begun > to->requests) /* else the request ended between the two reads */
                to->in_flight = from->begun - to->requests;
}

static void add_op(const struct op_counts *from, struct op_counts *to)
{
        to->requests += from->requests;
        to->bytes += from->bytes;
        to->errors += from->errors;
        to->in_flight += from->in_flight;
        to->latency_sum += from->latency_sum;
        for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
                to->latency[i] += from->latency[i];
}

static void take_queue(const struct queue_stats *from, struct device_stats *stats, unsigned queue)
{
        struct queue_counts *to = &stats->queues[queue];

        to->rounds = from->rounds;
        stats->total.rounds += from->rounds;
        to->unregistered = from->unregistered;
        to->held = from->held;
        stats->total.held += from->held;
        to->nudges = from->nudges;
        stats->total.nudges += from->nudges;
        stats->total.unregistered += from->unregistered;
        for (unsigned i = 0; i < _STATS_OP_MAX; i++) {
                take_op(&from->ops[i], &to->ops[i]);
                add_op(&to->ops[i], &stats->total.ops[i]);
        }
}

int device_stats_read(int fd, struct device_stats **ret)
{
        _cleanup_device_stats_ struct device_stats *stats = NULL;
        _cleanup_free_ struct queue_stats *scratch = NULL;
        struct device_region_header header;
        struct region_space space;
        int r = device_region_read_header(fd, &header);

        if (r >= 0)
                r = region_space_read(fd, &space);
        if (r < 0)
                return r;
        scratch = calloc(2, sizeof(*scratch));
        stats = calloc(1, sizeof(*stats) + header.queues * sizeof(stats->queues[0]));
        if (!scratch || !stats)
                return -ENOMEM;
        stats->queue_count = header.queues;
        stats->writes_waiting = space.waiting;
        r = region_errors_read_counts(fd, stats->errors);
        if (r >= 0)
                r = region_target_read_counts(fd, stats->of_target);
        if (r < 0)
                return r;
        for (unsigned i = 0; i < header.queues; i++) {
                r = read_queue(
                        fd, header.section[REGION_STATS].offset + i * device_region_stats_stride(), scratch);
                if (r < 0)
                        return r;
                take_queue(&scratch[0], stats, i);
        }
        *ret = TAKE_PTR(stats);
        return 0;
}

struct device_stats *device_stats_free(struct device_stats *stats)
{
        free(stats);
        return NULL;
}

uint64_t op_counts_percentile(const struct op_counts *counts, double fraction)
{
        uint64_t passed = 0, wanted = (uint64_t)(fraction * (double)counts->requests);
        unsigned bucket = 0;

        if (counts->requests == 0)
                return 0;
        if (wanted >= counts->requests)
                wanted = counts->requests - 1;
        for (; bucket < LATENCY_BUCKETS - 1; bucket++) {
                passed += counts->latency[bucket];
                if (passed > wanted)
                        break;
        }
        return (latency_bucket_start(bucket) + latency_bucket_start(bucket + 1)) / 2;
}
