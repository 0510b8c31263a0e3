/* SPDX-License-Identifier: MIT */
/* Amounts with a unit, as users write them. What is accepted is what schemas/types.schema.json says. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { DURATION_SIZE = 32, SIZE_TEXT_MAX = 32 };

/* Return whether `text` is one decimal digit or more, and nothing else, like the names of processes in /proc. */
bool is_number(const char *text);
/* "10GiB", "4096", "1MiB" → bytes. Returns 0, -EINVAL, or -ERANGE over INT64_MAX. */
int parse_bytes(const char *text, uint64_t *ret);
/* `bytes` as parse_bytes() reads it, with the largest unit that leaves a whole number: "64MiB"; "1000 bytes"
 * where none does. */
void format_size(uint64_t bytes, char ret[static SIZE_TEXT_MAX]);
/* "0", "250ms", "30s", "5m" or "5min", "2h" → microseconds. Returns 0, -EINVAL or -ERANGE over INT64_MAX. */
int parse_duration(const char *text, uint64_t *ret_usec);
/* `usec` as parse_duration() reads it, with the largest unit that leaves a whole number: "90s", "5min". */
void format_duration(uint64_t usec, char ret[static DURATION_SIZE]);
