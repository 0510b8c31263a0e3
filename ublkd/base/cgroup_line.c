/* SPDX-License-Identifier: MIT */
/* The line of /proc/PID/cgroup with the group in the hierarchy of the second version. */
#include "ublkd/base/cgroup_line.h"

#include <errno.h>
#include <string.h>

int cgroup_line_find(char *text, char **ret)
{
        char *path = text, *end;

        while (path && strncmp(path, "0::/", strlen("0::/")) != 0) {
                path = strchr(path, '\n');
                path = path ? path + 1 : NULL;
        }
        if (!path)
                return -ENODATA;
        path += strlen("0::");
        end = strchr(path, '\n');
        if (!end)
                return -ENAMETOOLONG;
        *end = '\0';
        *ret = path;
        return strncmp(path, "/..", strlen("/..")) == 0 ? -EXDEV : 0;
}
