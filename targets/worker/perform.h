/* From a request to its answer: what the core does around a target's callback. */
#pragma once

#include "targets/target.h"

/* Checks the request (known operation, range, alignment, read-only), calls the target, and makes IO_FUA true
 * where the target does not do so itself. Suspends unless the target NEVER_WAITS. Returns what the kernel is
 * to be told: the length of a read or write, 0 for the other operations, or -errno. */
int perform_co(struct target_io *io);

/* What the kernel is told, when the callback has returned `result`: -EIO for anything that makes no sense. */
int perform_answer(const struct target_io *io, int result);

/* The same as perform_co() for a request that is plain (plain.h) of a target that NEVER_WAITS: all that could
 * be wrong with it is known not to be. callback: the target's, for its operation. */
static inline int perform_plain(struct target_io *io, int (*callback)(struct target_io *io))
{
        int result = callback(io);

        return __builtin_expect(result == (int)io->length, 1) ? result : perform_answer(io, result);
}
