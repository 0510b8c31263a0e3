/* SPDX-License-Identifier: MIT */
/* Whether the backing store still reaches to the end of the disk.
 *
 * A file that is cut off under its disk has lost acknowledged data. A read beyond its end then comes back
 * short, which is an error already. But a write beyond its end makes the file longer again, and what lies
 * between reads as zeroes, without an error. So the worker looks where the file ends after the operations of
 * a round are done and before it answers any of them. When the file is too short, the worker latches
 * REGION_FAULT_CUT, and from then on every request of the disk fails: it is unknown how far the file had been
 * cut off before a write that was under way made it longer.
 *
 * One case stays open: the file is cut off while a write to the disk's last block is under way, which makes
 * the file as long as it was. Where the kernel cannot return at once where the store ends
 * (target_device.linear_end_known), the worker looks after a read that failed.
 *
 * Of a tree over several stores each is looked at: the disk ends where by their ends it ends.
 *
 * On the queue's thread. */
#pragma once

#include "targets/target.h"
#include "targets/worker/queue/shared_fault.h"

struct store_end {
        const struct target_device *device;
        const struct shared *shared;
        const struct region_control *control; /* of the device's region */
        bool looks;                           /* in each round */
        bool known;                           /* in this round */
        bool holds;                           /* meaningful if known */
};

/* Initialise `end` and begin a round. Device and shared must outlive it; the device must be open. */
void store_end_open(struct store_end *end, const struct target_device *device, const struct shared *shared);

/* Begin a round, or note that operations have been done since the last look. One load. */
static inline void store_end_round(struct store_end *end)
{
        end->holds = !region_fault_is_latched(end->control, REGION_FAULT_CUT);
        end->known = !end->looks || !end->holds;
}

/* Look now: see store_end_holds(). */
bool store_end_look(struct store_end *end);

/* Return whether a request may be answered with success. All operations that were done for it must have been
 * done when this is called first after store_end_round(). */
static inline bool store_end_holds(struct store_end *end)
{
        if (__builtin_expect(!end->known, 0))
                return store_end_look(end);
        return end->holds;
}
