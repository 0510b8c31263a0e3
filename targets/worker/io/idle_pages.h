/* SPDX-License-Identifier: MIT */
/* Memory is given back that the driver may write to meanwhile.
 *
 * On a ring without DEFER_TASKRUN the driver puts the bytes of a write into the memory of its tag in task
 * work, and that may run at any return of this thread to user mode: behind any system call, any interrupt.
 * There is no moment at which one could look whether something has come and drop the memory if not. */
#pragma once

#include <liburing.h>

/* What is needed to find out whether something has come. */
struct idle_pages_watch {
        const struct io_uring *ring; /* of this thread, with room for all that can complete */
        uint64_t user_data;          /* of the completion that reports so */
        int pagemap;                 /* /proc/self/pagemap, open for reading */
};

/* Free `length` bytes of private anonymous memory at `address` (both page-aligned), so that they read as
 * zeroes, unless their owner has a request: then all that was written to them is there. On the ring's thread.
 * Return 1: the owner has a request; 0: they are freed; -errno: nothing was changed; -ENOTRECOVERABLE: the
 * owner has a request whose bytes are lost, which must not be performed or answered. */
int idle_pages_drop(void *address, size_t length, const struct idle_pages_watch *watch);
