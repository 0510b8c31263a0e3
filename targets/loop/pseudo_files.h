/* SPDX-License-Identifier: MIT */
/* Files in which a kernel shows or takes its own state, and which keep no data: those of procfs, sysfs,
 * debugfs and their like. Some have a size, and some do what is written to them. */
#pragma once

#include "ublkd/base/problem.h"

/* Refuse the open file `fd` (O_PATH will do) when it is one of those. `path` is for the sentence. Return 0;
 * -EINVAL with a problem about /target/path; -ENOMEM. Reads and writes nothing. */
int pseudo_files_refuse(int fd, const char *path, struct problem_list *problems);
