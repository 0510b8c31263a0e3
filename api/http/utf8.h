/* SPDX-License-Identifier: MIT */
/* UTF-8, as RFC 3629 has it: no surrogates, nothing overlong, nothing beyond U+10FFFF. */
#pragma once

#include <stddef.h>

/* The length of the sequence that `text` (size bytes, at least 1) begins with, or 0 when it is none. */
size_t utf8_length(const char *text, size_t size);
