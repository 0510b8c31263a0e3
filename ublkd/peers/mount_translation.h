/* SPDX-License-Identifier: MIT */
/* The same file by another path, in another mount namespace. PURE: from the texts of two lists of mounts.
 *
 * A mount shows a directory of a file system. If two namespaces have mounts of the same file system, a path through one of
 * them and a path through the other one can lead to the same file. No link is followed: a path with a link has no
 * translation, or one that does not exist. */
#pragma once

#include <stdbool.h>

/* Find the path in the namespace of `ours` for `path` in that of `theirs`, both as /proc/PID/mountinfo has them (changed).
 * path: absolute, without "." and "..". Of several mounts that have the file, that with the larger part of the file system
 * counts. The caller frees *ret. writes: the file is to be written to. Return 0; -ENOENT: no mount of ours has it; -EROFS: the
 * mount of theirs is read-only, and only that keeps them from writing; -ENOMEM. */
int mount_translate(char *theirs, char *ours, const char *path, bool writes, char **ret);
