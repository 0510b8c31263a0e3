/* SPDX-License-Identifier: MIT */
/* The last action that a worker of the device took: how far it is and what came of it. It outlives the worker, and the
 * supervisor that asked for it.
 *
 * No other action of the device has had the id: so the end of one action is never taken for that of the next. The worker
 * that took it is named too: another worker does not go on with it. */
#pragma once

#include "ublkd/proto/device_region.h"

/* An action as the worker reports it. */
struct action_report {
        enum region_action_state state;
        uint64_t id;     /* 0: there was none */
        uint64_t worker; /* that took it: when it was started */
        uint64_t done, total;
        uint64_t found, found_bytes;
        int error;            /* errno; 0: none */
        uint32_t number;      /* of the target; 0: none */
        unsigned range_count; /* at most `found` */
        struct region_range ranges[REGION_ACTION_RANGES];
};

/* ---- for the worker, from one thread at a time ---- */

/* Begin action `id`, in the place of the last one. */
void region_action_begin(struct region_control *control, uint64_t id, uint64_t worker);
/* Set how far it is, in bytes. */
void region_action_progress(struct region_control *control, uint64_t done, uint64_t total);
/* Note a range. One that continues the last is the same range. */
void region_action_found(struct region_control *control, uint64_t offset, uint64_t length);
/* Note a number of the target. */
void region_action_number(struct region_control *control, uint32_t number);
/* End it. error: errno, of FAILED. */
void region_action_end(struct region_control *control, enum region_action_state state, int error);
/* Return whether the supervisor wants that action to end. */
bool region_action_is_cancelled(const struct region_control *control, uint64_t id);
/* Return the id of the last action; 0: there was none. */
uint64_t region_action_id(const struct region_control *control);

/* ---- for the supervisor ---- */

/* Read the last action. A worker may have written to all of it: what is returned lies within bounds, and means no more
 * than what it says of itself. What a worker has left half written is RUNNING. Return 0 or -errno as
 * device_region_read_control(). */
int region_action_read(int fd, struct action_report *ret);
/* Ask for the end of that action. Return 0 or -errno as device_region_read_header(). */
int region_action_cancel(int fd, uint64_t id);
