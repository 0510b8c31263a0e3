/* SPDX-License-Identifier: MIT */
/* The action "scrub": reads every block of the disk, through the targets below if it stands on others. For the worker. */
#pragma once

#include "targets/target_action.h"

/* Bytes in a row of one store that cannot be read: then the store itself fails. */
enum { SCRUB_FAILED_MAX = 1 << 30 };

/* Scrub the disk, from its beginning to its end, with struct scrub_arguments, whatever the number of the verb: the act callback of
 * target.h, of a target with scan() and SCRUB_VERB. Suspends. Return 0, also if ranges could not be read, which it reports;
 * -ECANCELED; or another -errno: the store cannot be read. */
int scrub_act(struct target_action *action, unsigned verb);

/* Read a part of the disk from the children, one after another in the order of the bytes: what scan() of a target that only
 * divides its requests does. Only within scrub_act(). Suspends. Return `length` or -errno, as scan(). */
int scrub_children(struct target_action *action, struct target_queue *queue, target_divide divide,
        uint64_t offset, uint32_t length, void *memory);
