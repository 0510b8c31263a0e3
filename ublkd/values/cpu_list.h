/* SPDX-License-Identifier: MIT */
/* CPU lists as the kernel writes them: "0-3,8". */
#pragma once

#include <stddef.h>

/* Set bit N (byte N / 8, bit N % 8) of ret_mask for every CPU N of the list, and clear all others; size is in
 * bytes. Ranges ascend ("0-3", not "3-0"); an overlap is fine. Return 0; -EINVAL: not a list; -ERANGE: a CPU
 * beyond the mask. */
int parse_cpu_list(const char *text, unsigned char *ret_mask, size_t size);

/* Format a mask of `size` bytes as a list, which the caller frees; "" for an empty mask. Return 0 or -ENOMEM.
 */
int format_cpu_list(const unsigned char *mask, size_t size, char **ret);
