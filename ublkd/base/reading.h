/* SPDX-License-Identifier: MIT */
/* What is read up to its end: a file, a pipe or a socket whose length is not known before. */
#pragma once

#include "ublkd/base/cleanup.h"

/* What has been read so far. Zeroed at first; reading_clear() frees it. */
struct reading {
        char *text; /* a NUL follows after `size` bytes; NULL: nothing has been read */
        size_t size, room;
};

/* Free what was read. */
void reading_clear(struct reading *reading);

/* Read once more from `fd`. Return 1: there may be more; 0: that was the end; -EAGAIN: a descriptor that does not block
 * has nothing now; -EFBIG: there is more than `size_max`; other -errno. What was read stays in `reading`. */
int reading_step(struct reading *reading, int fd, size_t size_max);

/* Read `fd` from its position to the end, `size_max` bytes at most. *ret ends with a NUL, and has no more memory than it
 * needs; the caller frees it. Return 0; -EFBIG: there is more; other -errno. */
int read_to_end(int fd, size_t size_max, char **ret, size_t *ret_size);
