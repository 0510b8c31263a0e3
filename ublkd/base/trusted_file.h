/* SPDX-License-Identifier: MIT */
/* Files and directories that decide what root does: only root, or the user that ublkd runs as, may write to them. */
#pragma once

#include <sys/stat.h>

/* Return why another user could change what has this status, with what to do; NULL: none could. */
const char *file_distrust(const struct stat *info);

/* Open a regular file to read it, also by a link. It is looked at before, because opening a device can do something, and again
 * after that. Return a descriptor; -EPERM: *ret_why says why it is not used, with what to do; other -errno. */
int open_trusted(int dir, const char *name, const char **ret_why);
