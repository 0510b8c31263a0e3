/* SPDX-License-Identifier: MIT */
/* Which file a database is, and whether its path still leads to it. For the store only. */
#pragma once

#include <sys/types.h>

struct database_file {
        const char *path; /* outlives this */
        dev_t device;
        ino_t inode;
};

/* Read which file `path` leads to, and keep `path`. Return 0 or -errno. */
int database_file_read(const char *path, struct database_file *ret);
/* Check whether the path still leads to that file. May block for ever if the file system does not answer.
 * Return 0; -ENOLINK: there is none, or another one; -EIO: the file system gives no answer. */
int database_file_check(const struct database_file *file);
