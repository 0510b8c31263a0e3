/* SPDX-License-Identifier: MIT */
/* A copy of a mount for a container: the ids on its file system are those of the user namespace of the container. */
#pragma once

#include <stdbool.h>

struct mount_options {
        bool read_only, no_exec;
};

/* Open the root of what is mounted at `path`. number: the file with the device number of its disk. Return a descriptor, as long as which
 * is open the mount cannot end; -ENXIO: nothing is mounted there; -ESTALE: the file system of another disk is; other -errno. */
int mount_clone_source(const char *path, const char *number);

/* Clone the mount that source is the root of, which is mounted at `path`, as a mount that is nowhere yet. Set-user-ID bits and device
 * nodes do not count in it, and a container cannot change that, nor the options. Return a descriptor or -errno. */
int mount_clone(int source, const char *path, int users, const struct mount_options *options);
