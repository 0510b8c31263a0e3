/* SPDX-License-Identifier: MIT */
/* Actions of a target: what takes its time, and a client starts by its name (target_desc.verbs).
 *
 * An action runs on one coroutine of the first queue, beside the requests of the disk, and one at a time. It allocates
 * nothing: the disk may hold swap, and that thread must never wait for a page. It waits only in await_*(), for moments,
 * and asks target_action_is_over() between them: after a cancellation, and when the driver has taken the queues away, the
 * worker waits for it.
 *
 * Death: an action ends with its worker, and the next worker does not go on with it. What it has reported until then
 * stays. */
#pragma once

#include "targets/target.h"

enum { TARGET_ACTION_MEMORY = 256 * 1024 }; /* bytes */

struct target_action {
        struct target_queue *queue;
        const void *arguments; /* of the verb's table, parsed */
        void *memory;  /* TARGET_ACTION_MEMORY bytes, zeroed, mapped and locked: until the action ends */
        void *own;     /* what the verb wants to find in scan() */
        unsigned node; /* the core's: which target of a tree the verb is of */
};

/* Return whether it is to return now, whatever it has done. Does not suspend. */
bool target_action_is_over(const struct target_action *action);
/* Report how far it is. done, total: bytes. Does not suspend. */
void target_action_progress(struct target_action *action, uint64_t done, uint64_t total);
/* Report a range. Of a verb of the outermost target it is one of the disk; of one that is `anywhere`, one of its own target. Ranges
 * that follow each other count as one. Does not suspend. */
void target_action_found(struct target_action *action, uint64_t offset, uint64_t length);
/* Report a number of the target, for its result. Does not suspend. */
void target_action_number(struct target_action *action, uint32_t number);
/* Report how the action has ended (result: 0 or more, or -errno): of one that ends with the worker, right before the target ends the
 * process. Does not suspend. */
void target_action_ended(struct target_action *action, int result);

/* Wait until the action may read `length` bytes: of the limits of the disk it takes its share as a request does, and it
 * reads no more than `rate` bytes in a second (above 0). Suspends. Return 0, or -ECANCELED: it is over. */
int await_action_share(struct target_action *action, uint32_t length, uint64_t rate);
/* Read from a file of the device of a queue (an index into device->files) into memory of the action. Suspends. Return `length`;
 * -ECANCELED: it is over; -EAGAIN: the kernel had no room for the read for seconds; or another -errno, as await_read(). */
int await_action_read(struct target_action *action, const struct target_queue *queue, unsigned file,
        void *memory, uint32_t length, uint64_t offset);
