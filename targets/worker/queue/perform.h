/* SPDX-License-Identifier: MIT */
/* From a request to its answer: what the core does around a target's callback. */
#pragma once

#include "targets/worker/queue/durability.h"

/* Checks the request (known operation, range, alignment, read-only), calls the target, and makes IO_FUA true
 * where the target does not do so itself. Suspends unless the target NEVER_WAITS. Returns what the kernel is
 * to be told: the length of a read or write, 0 for the other operations, or -errno. After a flush that
 * failed, flushes and operations with IO_FUA fail without being tried: see durability.h. */
int perform_co(struct target_io *io, const struct durability *durability);

/* The result for the kernel, when the callback has returned `result`: -EIO for anything that makes no sense. */
int perform_answer(const struct target_io *io, int result);
