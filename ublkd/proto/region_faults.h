/* SPDX-License-Identifier: MIT */
/* Faults of a backing store that lose acknowledged data, kept in the region of a device.
 *
 * A worker latches a fault before it fails the request, or refuses the store, that showed it. The fault then
 * outlives the worker and the supervisor: requests go on failing until the administrator accepts the fault and
 * another worker starts. A fault has a number, so that the administrator accepts only what the status showed.
 *
 * Workers write `word`, `at`, `detail` and `count`; the supervisor writes the rest, and clears a fault only
 * while the device has no worker. It also latches what a preflight worker found, which has a region of its
 * own. */
#pragma once

#include "ublkd/proto/device_region.h"

/* Return whether the fault is latched in the mapping at `base`. One load; any thread. */
static inline bool region_fault_is_latched(const struct region_control *control, enum region_fault fault)
{
        return __atomic_load_n(&control->faults[fault].word, __ATOMIC_ACQUIRE) != 0;
}

/* Latch the fault, unless it is latched; for the worker, any thread. error: a positive errno. detail: see
 * struct region_fault_state. Return whether this call latched it. */
bool region_fault_latch(struct region_control *control, enum region_fault fault, enum stats_op op, int error,
        uint64_t detail);

/* A fault as the supervisor reads it. */
struct fault_report {
        uint32_t number;             /* 0: no fault */
        uint32_t accepted, reported; /* see struct region_fault_state */
        enum stats_op op;
        int error;       /* errno */
        uint64_t at;     /* CLOCK_REALTIME, microseconds; 0: not known */
        uint64_t detail; /* see struct region_fault_state */
};

/* Read all faults of the region that is open as fd; for the supervisor, as all below. Return 0; -errno as
 * device_region_read_header(). */
int region_faults_read(int fd, struct fault_report ret[_REGION_FAULT_MAX]);
/* The same; *ret_epoch: that of the region. */
int region_faults_read_of(int fd, struct fault_report ret[_REGION_FAULT_MAX], uint32_t *ret_epoch);
/* Latch the fault as `report` has it (but for its number), unless it is latched. Workers may serve: they fail
 * requests from then on. Return 0 or -errno. */
int region_fault_copy(int fd, enum region_fault fault, const struct fault_report *report);
/* Note that the administrator accepts the fault up to `number` (0: takes that back). Return 0 or -errno. */
int region_fault_accept(int fd, enum region_fault fault, uint32_t number);
/* Note that there was an event of that fault. Return 0 or -errno. */
int region_fault_mark_reported(int fd, enum region_fault fault, uint32_t number);
/* Latch the fault again, as it was reported, while there is no worker. Return 0 or -errno. */
int region_fault_restore(int fd, enum region_fault fault, const struct fault_report *report);
/* Clear the fault, while there is no worker. Return 0 or -errno. */
int region_fault_clear(int fd, enum region_fault fault);
