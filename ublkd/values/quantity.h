/* SPDX-License-Identifier: MIT */
/* Amounts with a unit, as users write them. What is accepted is what schemas/types.schema.json says. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { DURATION_SIZE = 32, SIZE_TEXT_MAX = 32 };

/* Return whether `text` is one decimal digit or more, and nothing else, like the names of processes in /proc. */
bool is_number(const char *text);
/* Parse a size: "10GiB" or "10G", "4096", "1MiB" → bytes. Return 0; -EINVAL; -ERANGE: more than INT64_MAX. */
int parse_bytes(const char *text, uint64_t *ret);
/* Format bytes as parse_bytes() reads them, with the largest unit that leaves a whole number: "64MiB"; "1000
 * bytes" if none does. */
void format_size(uint64_t bytes, char ret[static SIZE_TEXT_MAX]);
/* Parse a duration: "0", "250ms", "30s", "5m" or "5min", "2h" → microseconds. Return 0; -EINVAL; -ERANGE:
 * more than INT64_MAX. */
int parse_duration(const char *text, uint64_t *ret_usec);
/* Format microseconds as parse_duration() reads them, with the largest unit that leaves a whole number:
 * "90s", "5min". */
void format_duration(uint64_t usec, char ret[static DURATION_SIZE]);
