/* SPDX-License-Identifier: MIT */
/* The processes of a control group. */
#include "ublkd/cgroups/group_procs.h"

#include <fcntl.h>
#include <limits.h>

enum { LINE_SIZE = 64 };

int group_procs_open(int dir, const char *name, FILE **ret)
{
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s/" GROUP_PROCS, name), fd;
        FILE *stream;

        if (n < 0 || n >= PATH_MAX)
                return -ENAMETOOLONG;
        fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
        stream = fd < 0 ? NULL : fdopen(fd, "re");
        if (!stream) {
                int r = -errno;

                close_fd(fd);
                return r;
        }
        *ret = stream;
        return 0;
}

int group_procs_next(FILE *stream, long *ret)
{
        char line[LINE_SIZE];

        if (!fgets(line, sizeof(line), stream))
                return ferror(stream) ? -EIO : 0;
        *ret = strtol(line, NULL, 10);
        return 1;
}
