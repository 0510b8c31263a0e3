/* SPDX-License-Identifier: MIT */
/* The region that a worker's queues share, for tests: private to the test. */
#pragma once

#include "targets/worker/queue/shared_fault.h"

#include <assert.h>
#include <sys/mman.h>
#include <unistd.h>

/* Stays mapped to the end of the test, or until shared_region_unmap(). */
static inline struct shared shared_region_new(void)
{
        struct shared shared = {.news = -1, .pagemap = -1};
        int fd = memfd_create("region", MFD_CLOEXEC), r;

        r = device_region_format(fd, &(struct device_region_key){.queues = 1});
        assert(r >= 0);
        r = device_region_map(fd, 1, &shared.region);
        assert(r >= 0);
        close(fd);
        return shared;
}

/* A zero-initialised `shared` is fine. */
static inline void shared_region_unmap(struct shared *shared)
{
        const struct device_region_header *header = shared->region;

        if (header)
                (void)munmap(shared->region, header->size);
        shared->region = NULL;
}
