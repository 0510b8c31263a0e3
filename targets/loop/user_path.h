/* SPDX-License-Identifier: MIT */
/* The path of a user's file, without the tricks that a path can play.
 *
 * The path is walked step by step from the root directory, and no link is followed, also none of /proc. A step into a FUSE
 * file system ends the walk before its server is asked anything: a user can be that server, and not answer. */
#pragma once

#include "ublkd/base/problem.h"

#include <sys/stat.h>

/* Open what the absolute path leads to, with O_PATH, with the rights of the calling thread. Return a descriptor; -errno with a
 * problem, if it has a sentence of its own here; other -errno; -ENOMEM. */
int user_path_open(const char *path, struct problem_list *problems);

/* Check that the file at `path` is a regular file of the user. Return 0; -errno with a problem; -ENOMEM. */
int user_path_check_file(
        const struct stat *stat, uid_t user, const char *path, struct problem_list *problems);
