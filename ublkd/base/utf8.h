/* SPDX-License-Identifier: MIT */
/* UTF-8, as RFC 3629 has it: no surrogates, nothing overlong, nothing beyond U+10FFFF. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_MAX = 4 /* bytes of a character */ };

/* Return the length of the sequence that `text` (size bytes, at least 1) begins with; 0: it is not one. */
size_t utf8_length(const char *text, size_t size);

/* Decode the character that `text` (size bytes, at least 1) begins with. Return its length; 0: it is not UTF-8. */
size_t utf8_decode(const char *text, size_t size, uint32_t *ret);

/* Return whether all of `text` is UTF-8. */
bool utf8_is_valid(const char *text, size_t size);

/* Return whether a byte continues the character before it. */
static inline bool utf8_is_continuation(char byte)
{
        return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Return the number of characters of a text that is UTF-8. */
size_t utf8_count(const char *text);

/* Replace every byte that is not part of UTF-8 with '?'. For texts from outside: names of processes, paths. */
void utf8_repair(char *text);
