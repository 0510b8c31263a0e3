/* SPDX-License-Identifier: MIT */
/* Whether flushes of a disk may still succeed.
 *
 * The kernel reports a write that it could not write back once, to the first fdatasync() after it. The next
 * one succeeds, although the data is gone. So the worker latches REGION_FAULT_FLUSH before it fails the
 * request, and every later flush and every later write with FUA fails with EIO, in this worker and in the
 * next ones, until the administrator accepts the loss.
 *
 * The kept descriptor of each backing store (target_store.kept) is a witness. It is an open file description of its own, and so
 * has a cursor of its own in the errors of the file (errseq_t): it still reports an error that another
 * fdatasync() has consumed, that of another queue, of a worker that is dead by now, or of another program. It
 * is asked after each flush, and before a worker begins to serve: sync_file_range() of a range that has no
 * pages waits for nothing, and returns the error (file_fdatawait_range(), mm/filemap.c).
 *
 * In this order: latch, then move the witness's cursor on, then answer. So a worker that dies in between has
 * lost nothing, and an error that was accepted is not found again.
 *
 * Not covered: a disk that fails its own flush command reports that to one caller only. If the worker dies
 * after the kernel has that answer and before the latch, it is lost. */
#pragma once

#include "targets/target.h"
#include "targets/worker/queue/shared_fault.h"

struct durability {
        const struct shared *shared;
        const int *witnesses; /* the disk's: struct disk */
        unsigned witness_count;
};

/* Return whether a flush has failed, and the administrator has not accepted that. One load. */
static inline bool durability_is_lost(const struct durability *durability)
{
        return region_fault_is_latched(device_region_control(durability->shared->region), REGION_FAULT_FLUSH);
}

/* Latch what the witnesses report. Call before the worker serves, and after the last request of any other
 * worker. */
void durability_ask(const struct durability *durability);

/* Return the answer to a flush, or an operation with FUA, that has ended with `result`: `result` or -errno.
 * lossy: `result`, if it is an error, means that acknowledged data may be lost. */
int durability_answer(const struct durability *durability, enum io_op op, int result, bool lossy);
