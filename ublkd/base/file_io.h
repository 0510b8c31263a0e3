/* SPDX-License-Identifier: MIT */
/* Small files, read at once, files that are replaced as a whole, and directories. `dir` and `name` are as of openat(2): with
 * AT_FDCWD, `name` is a path. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stdint.h>
#include <sys/types.h>

/* Read `name` with one read(2), for the short texts of /proc and /sys. `text` ends with a NUL; what does not
 * fit is left out. Return the number of bytes; -errno, and *text is "". */
ssize_t read_text_at(int dir, const char *name, char *text, size_t size);

/* Read as read_text_at(), but only up to the first line break. Return the length of the line, or -errno. */
ssize_t read_line_at(int dir, const char *name, char *text, size_t size);

/* Read the decimal number that `name` begins with; 0 when it begins with none. Return 0 or -errno. */
int read_number_at(int dir, const char *name, uint64_t *ret);

/* Read "MAJOR:MINOR", as /sys/block/DISK/dev has it. Return 0; -EBADMSG: the file has something else; other
 * -errno. */
int read_device_at(int dir, const char *name, dev_t *ret);

/* Read a regular file of `size_max` bytes at most, which is not a link. *ret ends with a NUL; the caller
 * frees it. Return 0; -EFBIG; -EBADMSG: it is not a regular file; other -errno. */
int read_whole_at(int dir, const char *name, size_t size_max, char **ret);

/* Replace `name`: a reader finds the old file or the whole new one. `make` creates the new file under the
 * name that it is given (".NAME.new"), and returns 0 or -errno; -EEXIST or -EADDRINUSE if something is
 * there: it is removed, and `make` called once more. Nothing that was at either name before is written to. Return 0
 * or -errno. */
int replace_at(
        int dir, const char *name, int (*make)(int dir, const char *fresh, void *userdata), void *userdata);

/* Replace `name` by a file that holds `text`, as replace_at() does. The file gets `mode`, whatever the umask
 * is. Return 0 or -errno. */
int replace_text_at(int dir, const char *name, mode_t mode, const char *text);

/* Create the directory `path` with `mode`, and those above it with 0755, as far as they are missing. Return 0
 * or -errno. */
int make_dirs(const char *path, mode_t mode);
