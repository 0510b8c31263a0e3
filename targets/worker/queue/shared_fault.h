/* SPDX-License-Identifier: MIT */
/* Latches a fault in the region of the device, and wakes the main thread, which reports it to the supervisor.
 * Any thread. */
#pragma once

#include "targets/worker/queue/shared.h"
#include "ublkd/proto/region_faults.h"

#include <sys/eventfd.h>

/* See region_fault_latch(). */
static inline void shared_fault_latch(
        const struct shared *shared, enum region_fault fault, enum stats_op op, int error, uint64_t detail)
{
        if (region_fault_latch(device_region_control(shared->region), fault, op, error, detail))
                (void)eventfd_write(shared->news, 1); /* fails only where the main thread has news already */
}
