/* SPDX-License-Identifier: MIT */
/* Where the bytes of a backing store lie: from what is open down to the leaves, over loop devices,
 * partitions, dm, md and overlays. */
#pragma once

#include "ublkd/backing/backing_claims.h"
#include "ublkd/base/problem.h"

#include <sys/types.h>

/* What is wanted of a walk, and what it finds. */
struct backing_stack {
        const char *path;              /* the store's name in sentences */
        uint64_t size;                 /* bytes, of the range in the store; UINT64_MAX: to its end */
        bool writes;                   /* is it used for writing */
        struct backing_claims *claims; /* appended to, the store itself first */
        /* Appended to: error 0 and reason BackingShareUnknown for what cannot be known; an errno and reason
         * BackingStackUnreadable for a stack that is too deep or cannot be read, BackingInUse (EBUSY) for a
         * disk below a loop device that another program has claimed. NULL: not of interest. */
        struct problem_list *sharing;
};

/* Append the claims of a range, and of the disks and files below it, to stack->claims. fd: of a file or a
 * block device, O_PATH is enough. start: of the range, bytes. Return 0 or -errno (-ENOMEM; what cannot be
 * known goes to stack->sharing). */
int backing_stack_walk(const struct backing_stack *stack, int fd, uint64_t start);
/* Append the claims of what a loop device of the kernel lies in, without the loop device itself. Return 0;
 * -ENXIO: it lies in nothing; other -errno. */
int backing_stack_walk_loop(const struct backing_stack *stack, dev_t number);
