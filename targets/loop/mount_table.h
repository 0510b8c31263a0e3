/* SPDX-License-Identifier: MIT */
/* One line of /proc/self/mountinfo: a mount of this process's namespace. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Owned strings. */
struct mount_row {
        uint64_t id;   /* as STATX_MNT_ID */
        dev_t device;  /* of its file system */
        char *root;    /* which directory (or file) of the file system is mounted */
        char *point;   /* where */
        char *type;    /* of the file system: "ext4" */
        char *options; /* of the file system; each value as the kernel wrote it: see path_unescape() */
};

/* Parse a line of /proc/self/mountinfo without its end; `text` is changed. The caller clears *ret. Return 0,
 * -EBADMSG or -ENOMEM. */
int mount_row_parse(char *text, struct mount_row *ret);
/* Find the first row for which `fits` returns true; the caller clears *ret. Return 0; -ENOENT: no row fits;
 * other -errno. */
int mount_table_find(
        bool (*fits)(const struct mount_row *row, const void *data), const void *data, struct mount_row *ret);
/* Find the row of the mount with this id, as STATX_MNT_ID; the same otherwise. */
int mount_table_find_id(uint64_t id, struct mount_row *ret);
/* Free the strings of a row. */
void mount_row_clear(struct mount_row *row);
#define _cleanup_mount_row_ _cleanup_(mount_row_clear)
