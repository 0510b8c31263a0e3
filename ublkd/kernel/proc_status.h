/* SPDX-License-Identifier: MIT */
/* The text of /proc/PID/status. */
#pragma once

#include <stdint.h>

/* Return what stands behind "FIELD:" in such a text, up to the end of the line, with the tab in front of the value; NULL:
 * there is no such field, or its line is cut off. The name of a process cannot pretend to be a field: the kernel escapes a
 * line break in it. */
const char *proc_status_field(const char *status, const char *field);

/* Return the number at `index` (from 0) in a field, such as "Uid" with the ids: real, in effect, saved, of the file system; -1:
 * there is none. */
int64_t proc_status_number(const char *status, const char *field, unsigned index);
