/* SPDX-License-Identifier: MIT */
/* The requests of a device that failed, in its region: how many, and the newest one of each operation.
 *
 * Only a request that fails touches this. It outlives workers and supervisors, and ends with the disk. A worker of
 * another version may write anything: the supervisor shows it, within bounds, and decides nothing by it. */
#pragma once

#include "ublkd/proto/device_region.h"

/* ---- for the worker ---- */

/* Make it writable again after a worker that died while it wrote. Before the first queue serves. */
void region_errors_begin(struct region_control *control);
/* Note a request of `op` that failed with `error`, a positive errno; any thread. Return whether the supervisor has to
 * look: at most once a second. EOPNOTSUPP is counted and no more: it is an answer, and the store has not failed. */
bool region_error_note(
        struct region_control *control, enum stats_op op, int error, uint64_t offset, uint32_t length);

/* ---- for the supervisor ---- */

/* The newest failed request of an operation, as the supervisor reads it. */
struct error_report {
        uint64_t count;    /* 0: none has failed */
        uint64_t reported; /* see struct region_error */
        uint64_t at;       /* CLOCK_REALTIME, microseconds; never in the future */
        uint64_t offset;   /* bytes; fits every JSON number */
        uint32_t length;
        int error; /* errno, 1 to 4095 */
};

/* Read all of the region that is open as fd. Return 0; -errno as device_region_read_header(). */
int region_errors_read(int fd, struct error_report ret[_STATS_OP_MAX]);
/* Read the counts by error. Return 0 or -errno. */
int region_errors_read_counts(int fd, uint64_t ret[_STATS_OP_MAX][_REGION_ERRNO_MAX]);
/* Note that there was an event of that many failed requests of `op`. Return 0 or -errno. */
int region_error_mark_reported(int fd, enum stats_op op, uint64_t count);
