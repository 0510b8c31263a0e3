/* SPDX-License-Identifier: MIT */
/* For tests of the kept memory in a region: a disk, a target that keeps memory for it, and one that keeps none. */
#pragma once

#include "tests/unit/check.h"
#include "ublkd/proto/region_kept.h"

#include <sys/mman.h>

enum { QUEUES = 3, DISK_BYTES = 5000, QUEUE_BYTES = 100 };

static const struct device_region_key key = {.queues = QUEUES, .epoch = 7};
static const struct region_kept_wish none = {.target = "null"};
static const struct region_kept_wish some = {
        .target = "keeping", .disk_bytes = DISK_BYTES, .queue_bytes = QUEUE_BYTES, .version = 1};

static int new_file(void)
{
        int fd = memfd_create("region", MFD_CLOEXEC);

        CHECK(fd >= 0);
        return fd;
}
