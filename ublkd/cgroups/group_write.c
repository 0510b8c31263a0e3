/* SPDX-License-Identifier: MIT */
/* The files of one control group. */
#include "ublkd/cgroups/group_write.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/cgroups/group_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

enum { LINE_SIZE = 256 };

/* O_NONBLOCK: since Linux 6.16 a limit on memory that is exceeded is left to the worker, and the caller does not wait for its
 * memory to be reclaimed. */
int group_write(int dir, const char *name, const char *text)
{
        _cleanup_close_ int fd = openat(dir, name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

        if (fd < 0 || write(fd, text, strlen(text)) < 0)
                return -errno;
        return 0;
}

void group_write_no_pressure(int group)
{
        (void)group_write(group, "cgroup.pressure", "0");
}

/* Without the controller there is no memory.oom.group. */
void group_write_new(int group)
{
        if (group < 0)
                return;
        (void)group_write(group, "memory.oom.group", "1");
        group_write_no_pressure(group);
}

static int write_limit(int group, enum group_limit which, const char *text)
{
        return group_write(group, group_limit_file(which), text);
}

static FILE *open_disks(int group)
{
        int fd = openat(group, group_limit_file(GROUP_IO_MAX), O_RDONLY | O_CLOEXEC);
        FILE *stream = fd < 0 ? NULL : fdopen(fd, "re");

        if (!stream && fd >= 0)
                close_fd(fd);
        return stream;
}

/* Take back the limits for all disks but one: the store may have moved. */
static int clear_disks(int group, dev_t keep)
{
        _cleanup_fclose_ FILE *stream = open_disks(group);
        char line[LINE_SIZE], text[GROUP_LIMIT_TEXT_SIZE];
        int r = 0;

        if (!stream)
                return errno == ENOENT ? 0 : -errno;
        while (fgets(line, sizeof(line), stream)) {
                unsigned device_major, device_minor;
                int one;

                if (sscanf(line, "%u:%u ", &device_major, &device_minor) != 2
                        || makedev(device_major, device_minor) == keep)
                        continue;
                group_io_none_text(makedev(device_major, device_minor), text);
                one = write_limit(group, GROUP_IO_MAX, text);
                if (one < 0 && one != -ENODEV) /* such a disk is gone */
                        r = one;
        }
        return r;
}

static int take_back(int group, const struct group_limits *limits, enum group_limit which)
{
        char text[GROUP_LIMIT_TEXT_SIZE];
        int r;

        if (which == GROUP_IO_MAX)
                return clear_disks(group, 0);
        r = group_limit_text(limits, which, text);
        if (r >= 0)
                r = write_limit(group, which, text);
        return r == -ENOENT ? 0 : r;
}

static int set_limit(int group, const struct group_limits *limits, enum group_limit which)
{
        char text[GROUP_LIMIT_TEXT_SIZE];
        int r = group_limit_text(limits, which, text);

        if (which == GROUP_IO_MAX && r >= 0)
                r = clear_disks(group, limits->disk);
        return r < 0 ? r : write_limit(group, which, text);
}

int group_write_limits(int group, const struct group_limits *limits, int ret[static _GROUP_LIMIT_MAX])
{
        int r = 0;

        for (unsigned i = 0; i < _GROUP_LIMIT_MAX; i++) {
                enum group_limit which = (enum group_limit)i;
                int one = 0;

                ret[i] = 0;
                if (group_limit_is_set(limits, which))
                        ret[i] = group < 0 ? group : set_limit(group, limits, which);
                else if (group >= 0)
                        one = take_back(group, limits, which);
                r = one < 0 ? one : r;
        }
        return r;
}

void group_write_no_more_bounds(int group, const struct group_limits *limits)
{
        for (unsigned i = 0; i < _GROUP_LIMIT_MAX; i++)
                if (group_limit_is_bound((enum group_limit)i)
                        && !group_limit_is_set(limits, (enum group_limit)i))
                        (void)take_back(group, limits, (enum group_limit)i);
}

unsigned group_write_bounds(int group, const struct group_limits *limits)
{
        unsigned in_force = 0;

        for (unsigned i = 0; i < _GROUP_LIMIT_MAX; i++)
                if (group_limit_is_bound((enum group_limit)i)
                        && group_limit_is_set(limits, (enum group_limit)i)
                        && set_limit(group, limits, (enum group_limit)i) >= 0)
                        in_force++;
        return in_force;
}
