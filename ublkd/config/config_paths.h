/* SPDX-License-Identifier: MIT */
/* Which files a configuration is read from, by systemd's rules: the first ublkd.conf of four directories, and the
 * drop-ins of all of them. Reads directories, which may block. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stddef.h>

/* In the order in which they are read: the later one has priority. */
struct config_paths {
        char **items;
        size_t count;
        char *failed; /* what could not be looked at, or NULL */
        int error;    /* why: -errno */
};

/* List the files below `root`. Return 0; -ENOMEM; other -errno, and ret->failed. Clear `ret` in any case. */
int config_paths_list(const char *root, struct config_paths *ret);
void config_paths_clear(struct config_paths *paths);
/* Read a file of the list. *ret has *ret_size bytes and a NUL behind them, and is the caller's. Of a link to /dev/null
 * the size is 0. Return 0; -EFBIG: it is larger than CONFIG_FILE_MAX; -EBADMSG: it is not a file; other -errno. */
int config_paths_read(const char *path, char **ret, size_t *ret_size);

enum { CONFIG_FILE_MAX = 1024 * 1024 };
