/* SPDX-License-Identifier: MIT */
/* Print numbers for people. Pure. */
#pragma once

enum { SIZE_ARGUMENT_SIZE = 32 };

/* Convert a size of the command line to the form that every ublkd understands: K, M, G and T (as in truncate(1))
 * become KiB, MiB, GiB and TiB. Copy any other text; cut text that is too long for any size, so that it is invalid. */
void size_argument(const char *text, char ret[static SIZE_ARGUMENT_SIZE]);

#include <stdint.h>

enum { AMOUNT_TEXT_SIZE = 32 };

/* Format bytes: "10GiB", "1.5TiB", "512B"; at most four digits. */
void format_bytes(double bytes, char ret[static AMOUNT_TEXT_SIZE]);
/* Format a count: "950", "12.3k", "4.56M". */
void format_count(double count, char ret[static AMOUNT_TEXT_SIZE]);
/* Format a time: "870ns", "12.3us", "4.56ms", "1.20s"; "-" for a negative number. */
void format_nanoseconds(double nanoseconds, char ret[static AMOUNT_TEXT_SIZE]);
