/* SPDX-License-Identifier: MIT */
/* The line of /proc/PID/cgroup with the group in the hierarchy of the second version ("0::/PATH"). Pure. */
#pragma once

enum { CGROUP_TEXT_SIZE = 8192 }; /* bytes with the NUL, of all lines: a path has PATH_MAX at most */

/* Find the line in one or all lines of the file, and end the text after the path. No name of a group has a newline. *ret is in
 * `text`. Return 0; -ENODATA: there is no such line; -ENAMETOOLONG: the text ends within it; -EXDEV: the group is outside of
 * the namespace of the reader ("/../PATH"), and *ret is set all the same. */
int cgroup_line_find(char *text, char **ret);
