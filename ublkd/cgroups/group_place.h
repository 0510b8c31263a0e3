/* SPDX-License-Identifier: MIT */
/* Where the control groups of workers lie.
 *
 * Under systemd in a unit of their own, ublkd-workers.service, which systemd delegates (units/). Else in
 * "ublkd-workers" beside the group of ublkd. Never below the group of ublkd: a group that has processes of its own
 * passes no controller on, and one that passes them on takes no process, so systemd could not start the next ublkd. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Where to look; other paths in tests. The texts outlive all that knows them. */
struct group_sources {
        const char *mount;         /* "/sys/fs/cgroup" */
        const char *own;           /* "/proc/self/cgroup" */
        const char *systemd;       /* "/run/systemd/system": exists where systemd is the init */
        const char *pid_namespace; /* "/proc/self/ns/pid" */
};

extern const struct group_sources group_sources_of_host;

struct group_place {
        char path[PATH_MAX]; /* of the directory, which may not exist */
        bool delegated;      /* systemd makes the directory; else ublkd */
        uint64_t
                pid_namespace; /* inode number of ublkd's own, which names of groups have; 0: that of the machine */
};

/* Find the place. Reads some small files. Return 0; -ENXIO: cgroup v2 is not mounted; -EXDEV: ublkd is in a group that
 * cannot be seen from here; other -errno. */
int group_place_find(const struct group_sources *sources, struct group_place *ret);
/* Find the directory of the group that this process is in. Return as group_place_find() does. */
int group_place_find_own(const struct group_sources *sources, char ret[static PATH_MAX]);
