/* SPDX-License-Identifier: MIT */
/* How the bytes of a request get between the kernel and a worker: the names. */
#include "ublkd/kernel/data_path.h"
#include "ublkd/base/cleanup.h"

#include <assert.h>

static const char *const names[] = {
        [DATA_PATH_AUTO] = "auto",
        [DATA_PATH_COPY] = "copy",
        [DATA_PATH_USER_COPY] = "user-copy",
        [DATA_PATH_ZERO_COPY] = "zero-copy",
};
_Static_assert(ARRAY_SIZE(names) == _DATA_PATH_MAX, "every path has a name");

const char *data_path_to_string(enum data_path path)
{
        assert((unsigned)path < _DATA_PATH_MAX);
        return names[path];
}
