/* SPDX-License-Identifier: MIT */
/* Whether requests of a queue are late: none of their kind has ended from one look to the next. The kernel may have
 * failed to wake the thread that is to perform them; io_loop_nudge() wakes it. It does not matter for that whether
 * they wait for such a thread, which a queue cannot know, or for the backing store, for limits or for room.
 *
 * A look goes through the histograms of the queue: once in a while, not for each request. */
#pragma once

#include "ublkd/proto/device_region.h"

#include <stdbool.h>

/* What the last look has seen. Zero-initialise. */
struct late {
        struct {
                uint64_t under_way, ended;
        } ops[_STATS_OP_MAX];
};

/* Look at the queue. Return whether requests are late. */
bool late_look(struct late *late, const struct queue_stats *stats);
/* Return whether requests were under way at the last look. */
bool late_is_under_way(const struct late *late);
