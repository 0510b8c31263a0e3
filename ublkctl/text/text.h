/* SPDX-License-Identifier: MIT */
/* Build texts in memory: one that grows, and one that is printed. Pure. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Zeroed: empty. The owner frees `bytes` with free(). */
struct text {
        char *bytes; /* NUL-terminated; NULL: still empty */
        size_t size, capacity;
};

/* Append bytes. False, and nothing changes: the text would exceed `size_max` bytes, or ENOMEM. */
bool text_append(struct text *text, const char *bytes, size_t size, size_t size_max);

/* Format as vasprintf(3). Return the text, which the caller frees, or NULL on ENOMEM. */
char *text_format(const char *format, va_list arguments) _printf_(1, 0);
