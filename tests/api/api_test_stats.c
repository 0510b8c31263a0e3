/* SPDX-License-Identifier: MIT */
/* One memory of statistics, and the commands that count in it. */
#include "tests/api/api_test_stats.h"

#include "ublkd/proto/device_region.h"
#include "ublkd/proto/latency_buckets.h"
#include "ublkd/proto/region_errors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static int open_region(struct api_test_stats *stats)
{
        static const struct device_region_key key = {.queues = 2};
        int r;

        if (stats->region)
                return 0;
        stats->fd = memfd_create("region", MFD_CLOEXEC);
        r = stats->fd < 0 ? -errno : device_region_format(stats->fd, &key);
        return r < 0 ? r : device_region_map(stats->fd, key.queues, &stats->region);
}

int api_test_stats_count(struct api_test_stats *stats, char *arguments)
{
        const char *name = strsep(&arguments, " ");
        unsigned queue = 0, op = 0, times = 0;
        unsigned long long bytes = 0, ns = 0;
        struct op_stats *counted;
        int r = open_region(stats);

        if (r < 0 || sscanf(arguments, "%u %u %u %llu %llu", &queue, &op, &times, &bytes, &ns) != 5)
                return r < 0 ? r : -EINVAL;
        snprintf(stats->name, sizeof(stats->name), "%s", name);
        counted = &device_region_queue_stats(stats->region, queue)->ops[op];
        counted->latency[latency_bucket(ns)] += times;
        counted->latency_sum += ns * times;
        counted->bytes += bytes * times;
        device_region_queue_stats(stats->region, queue)->rounds++;
        device_region_queue_stats(stats->region, queue)->unregistered += 2;
        device_region_queue_stats(stats->region, queue)->nudges += 3;
        return 0;
}

int api_test_stats_fail(struct api_test_stats *stats, char *arguments)
{
        const char *name = strsep(&arguments, " ");
        unsigned queue = 0, op = 0, times = 0;
        int r = open_region(stats);

        if (r < 0 || sscanf(arguments, "%u %u %u", &queue, &op, &times) != 3)
                return r < 0 ? r : -EINVAL;
        snprintf(stats->name, sizeof(stats->name), "%s", name);
        device_region_queue_stats(stats->region, queue)->ops[op].errors += times;
        for (unsigned i = 0; i < times; i++)
                (void)region_error_note(device_region_control(stats->region), (enum stats_op)op,
                        op == STATS_WRITE ? ENOSPC : EIO, 0, 4096);
        return 0;
}

int api_test_stats_read(const struct api_test_stats *stats, const char *name, struct device_stats **ret)
{
        if (strcmp(name, stats->name) != 0)
                return -ENOENT;
        return stats->error ? stats->error : device_stats_read(stats->fd, ret);
}
