/* SPDX-License-Identifier: MIT */
/* Notes a request that failed in the region of the device, and wakes the main thread where the supervisor has to look.
 * Any thread. */
#pragma once

#include "targets/target.h"
#include "targets/worker/queue/shared.h"
#include "ublkd/proto/region_errors.h"

#include <sys/eventfd.h>

/* error: a positive errno. */
static inline void shared_error_note(const struct shared *shared, const struct target_io *io, int error)
{
        /* In the order of enum io_op: see queue_meter.h. */
        if (region_error_note(device_region_control(shared->region), (enum stats_op)io->op, error, io->offset,
                    io->length))
                (void)eventfd_write(shared->news, 1); /* fails only where the main thread has news already */
}
