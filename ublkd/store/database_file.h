/* SPDX-License-Identifier: MIT */
/* Which file a database is, and whether its path still leads to it. For the store only. */
#pragma once

#include <sys/types.h>

struct database_file {
        const char *path; /* outlives this */
        dev_t device;
        ino_t inode;
};

/* Reads which file `path` leads to, and keeps `path`. 0 or -errno. */
int database_file_read(const char *path, struct database_file *ret);
/* Looks whether the path still leads to that file: 0; -ENOLINK: there is none, or another one; -EIO: the file system
 * does not say. May block for ever where the file system does not answer. */
int database_file_check(const struct database_file *file);
