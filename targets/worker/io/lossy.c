/* SPDX-License-Identifier: MIT */
/* Which errors of a flush may mean that data is lost. */
#include "targets/worker/io/lossy.h"

#include <errno.h>

static bool flush_is_lossy(int result)
{
        return result < 0 && result != -EINTR && result != -EAGAIN;
}

/* One that found no room, or was not allowed, has failed before it was flushed; what it was to write was not
 * acknowledged. */
static bool fua_is_lossy(int result)
{
        static const int harmless[] = {-ENOSPC, -EDQUOT, -EROFS, -EFBIG, -EINVAL, -EPERM, -EOPNOTSUPP};

        for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
                if (result == harmless[i])
                        return false;
        return flush_is_lossy(result);
}

bool result_is_lossy(enum io_op op, unsigned flags, int result)
{
        if (op == IO_FLUSH)
                return flush_is_lossy(result);
        return op == IO_WRITE && (flags & IO_FUA) && fua_is_lossy(result);
}
