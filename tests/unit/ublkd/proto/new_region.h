/* SPDX-License-Identifier: MIT */
/* A region of two queues, as the supervisor has it and as its worker does. */
#pragma once

#include "tests/unit/check.h"
#include "ublkd/proto/device_region.h"

#include <sys/mman.h>

/* Return a descriptor of a new region, the caller's, and map its control section. */
static inline int new_region(struct region_control **ret_control)
{
        int fd = memfd_create("region", MFD_CLOEXEC);
        void *base = NULL;

        CHECK_INT(device_region_format(fd, &(struct device_region_key){.queues = 2}), 0);
        CHECK_INT(device_region_map(fd, 2, &base), 0);
        *ret_control = device_region_control(base);
        return fd;
}
