/* SPDX-License-Identifier: MIT */
/* Statistics of one device of the API tests: a real region with two queues, in which commands count. */
#pragma once

#include "ublkd/model/device_stats.h"

struct api_test_stats {
        char name[64]; /* of the device */
        int fd, error; /* error: -errno of each read; 0: none */
        void *region;  /* NULL: none yet */
};

/* Count requests, or failed ones. The arguments are those of the commands "count" and "errors" of
 * api_test_server, which name the device. 0 or -errno. */
int api_test_stats_count(struct api_test_stats *stats, char *arguments);
int api_test_stats_fail(struct api_test_stats *stats, char *arguments);

/* Read the statistics of a device. -ENOENT: it is another device. The caller frees *ret. */
int api_test_stats_read(const struct api_test_stats *stats, const char *name, struct device_stats **ret);
