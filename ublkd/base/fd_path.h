/* SPDX-License-Identifier: MIT */
/* The path of an open descriptor, for calls that take no descriptor, or none of O_PATH. Needs /proc. */
#pragma once

#include <stdio.h>

struct fd_path {
        char text[32];
};

/* Return "/proc/self/fd/N". */
static inline struct fd_path fd_path(int fd)
{
        struct fd_path path;

        snprintf(path.text, sizeof(path.text), "/proc/self/fd/%d", fd);
        return path;
}
