/* SPDX-License-Identifier: MIT */
/* An empty file for a test, which has no name and ends with its descriptor. */
#pragma once

#include "tests/unit/check.h"

#include <fcntl.h>
#include <stdio.h>

/* Return its descriptor, which the caller closes; -1 after a failed check. */
static inline int open_temporary(void)
{
        FILE *file = tmpfile();
        int fd = file ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 0) : -1;

        if (file)
                fclose(file);
        CHECK(fd >= 0);
        return fd;
}
