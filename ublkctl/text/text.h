/* SPDX-License-Identifier: MIT */
/* Texts in memory: one that grows, and one that is printed into. Pure. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Zeroed: empty. `bytes` is the owner's to free(). */
struct text {
        char *bytes; /* NUL-terminated; NULL: nothing was ever appended */
        size_t size, capacity;
};

/* False, and nothing changes: it would be longer than `size_max` bytes, or there is no memory. */
bool text_append(struct text *text, const char *bytes, size_t size, size_t size_max);

/* As vasprintf(3), but NULL when there is no memory. The caller frees it. */
char *text_format(const char *format, va_list arguments) _printf_(1, 0);
