/* SPDX-License-Identifier: MIT */
/* CPU lists as the kernel writes them: "0-3,8". */
#pragma once

#include <stddef.h>

/* Sets bit N (byte N / 8, bit N % 8) of ret_mask for every CPU N of the list, and clears all others; size is
 * in bytes. Ranges ascend ("0-3", not "3-0"); an overlap is fine. Returns 0; -EINVAL: not a list; -ERANGE: a
 * CPU beyond the mask. */
int parse_cpu_list(const char *text, unsigned char *ret_mask, size_t size);

/* The list of a mask, to be freed; "" for an empty one. 0 or -ENOMEM. */
int format_cpu_list(const unsigned char *mask, size_t size, char **ret);
