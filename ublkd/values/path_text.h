/* SPDX-License-Identifier: MIT */
/* Paths as text: nothing is looked up, so a link stays the name that it is. Pure. */
#pragma once

/* Make the absolute form of `path`, which begins in `directory` (absolute) unless it is absolute itself:
 * without "//", "/." and a "/" at the end; "NAME/.." goes with NAME, as if NAME were not a link. The caller
 * frees *ret. Return 0 or -ENOMEM. */
int path_make_absolute(const char *directory, const char *path, char **ret);

/* Return what follows `directory` in the path: "" or "/..."; NULL: the path is not in it. Both are absolute. Of "/" it is the
 * whole path. */
const char *path_rest(const char *path, const char *directory);

/* Undo the escapes of /proc (mountinfo, swaps), in place: "\040" is a space. */
void path_unescape(char *text);
