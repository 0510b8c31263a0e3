/* SPDX-License-Identifier: MIT */
/* Whether flushes of a disk may still succeed. */
#include "targets/worker/queue/durability.h"

#include <errno.h>
#include <fcntl.h>

/* No file has pages there: beyond MAX_LFS_FILESIZE less one page. */
#define OFFSET_FAR_BEYOND INT64_C(0x7fffffffffffe000)

/* The errors of sync_file_range() itself; any other is one of a write (errseq_check_and_advance()). */
static bool is_of_the_call(int error)
{
        return error == EINVAL || error == EBADF || error == ESPIPE || error == EINTR || error == ENOSYS;
}

/* Return the errno that the witness reports, once; 0 if it reports none. */
static int witness_error(int kept)
{
        if (sync_file_range(kept, OFFSET_FAR_BEYOND, 1, SYNC_FILE_RANGE_WAIT_BEFORE) == 0)
                return 0;
        return is_of_the_call(errno) ? 0 : errno;
}

static void latch(const struct durability *durability, enum io_op op, int error)
{
        shared_fault_latch(durability->shared, REGION_FAULT_FLUSH, (enum stats_op)op, error, 0);
}

/* Each is asked, also after one that reports an error: it reports that once. */
static void ask(const struct durability *durability, enum io_op op)
{
        for (unsigned i = 0; i < durability->witness_count; i++) {
                int error = witness_error(durability->witnesses[i]);

                if (error > 0)
                        latch(durability, op, error);
        }
}

void durability_ask(const struct durability *durability)
{
        ask(durability, IO_FLUSH);
}

int durability_answer(const struct durability *durability, enum io_op op, int result, bool lossy)
{
        if (result < 0 && lossy)
                latch(durability, op, -result);
        ask(durability, op);
        /* Another queue may have latched what it consumed, and so kept it from this request. */
        return result >= 0 && durability_is_lost(durability) ? -EIO : result;
}
