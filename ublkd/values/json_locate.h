/* SPDX-License-Identifier: MIT */
/* Find the line of a value in a JSON text, for messages about a file. */
#pragma once

#include <stddef.h>

/* Return the line, from 1, on which the value of an RFC 6901 pointer begins (of a member: its name). If there is no
 * such value (a missing field), return the line of the innermost value above it that there is. Of names that
 * occur twice in an object the first counts. `text` ends with a NUL, and json_check() has accepted it. */
size_t json_locate(const char *text, const char *pointer);
