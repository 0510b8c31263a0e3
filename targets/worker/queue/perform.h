/* SPDX-License-Identifier: MIT */
/* From a request to its answer: what the core does around a target's callback. */
#pragma once

#include "targets/worker/queue/durability.h"

/* Check the request (known operation, range, alignment, read-only), call the target, and make IO_FUA true if
 * the target does not do so itself. Suspends unless the target NEVER_WAITS. Return the result for the kernel:
 * the length of a read or write, 0 for the other operations, or -errno. After a flush that failed, flushes
 * and operations with IO_FUA fail at once: see durability.h. */
int perform_co(struct target_io *io, const struct durability *durability);

/* Return the result for the kernel when the callback has returned `result`: -EIO for anything that makes no
 * sense. */
int perform_answer(const struct target_io *io, int result);
