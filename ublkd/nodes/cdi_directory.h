/* SPDX-License-Identifier: MIT */
/* Which directories may hold files for container engines: the configuration may name another one than before, or none, and
 * the files in the old one would give away whatever has the numbers of the disks later. */
#pragma once

#define CDI_DIRECTORIES_FILE "cdi-directories"

/* Remove the files of this ublkd from all directories that were used before, except `directory`, and remember that one, before
 * the first file is written to it.
 * The file CDI_DIRECTORIES_FILE in the state directory has the names, one in a line. directory: NULL: none.
 * Return 0; -errno: `directory` may not be used; *ret_left: -errno: files were left, and the next call tries again. */
int cdi_directory_use(const char *state_dir, const char *directory, const char *instance, int *ret_left);
/* Remove the files of this ublkd from a directory that may not be used. Return 0 or more, also if it does not exist; -errno: files were
 * left. */
int cdi_directory_clear(const char *directory, const char *instance);
