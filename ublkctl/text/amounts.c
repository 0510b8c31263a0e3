/* SPDX-License-Identifier: MIT */
/* Print numbers for people. */
#include "ublkctl/text/amounts.h"

#include "ublkd/base/cleanup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct scale {
        double factor;
        const char *unit;
};

/* Print three significant digits, with the largest unit that leaves at least 1. `scales` descend and end with
 * 1. */
static void format_scaled(double value, const struct scale *scale, char *ret)
{
        int digits;

        while (scale->factor > 1 && value < scale->factor)
                scale++;
        value /= scale->factor;
        digits = scale->factor == 1 || value >= 99.95 || value == (double)(uint64_t)value ? 0
                 : value >= 9.995                                                         ? 1
                                                                                          : 2;
        snprintf(ret, AMOUNT_TEXT_SIZE, "%.*f%s", digits, value, scale->unit);
}

void size_argument(const char *text, char ret[static SIZE_ARGUMENT_SIZE])
{
        size_t length = strlen(text);
        bool bare =
                length > 1 && strspn(text, "0123456789") == length - 1 && strchr("KMGT", text[length - 1]);

        snprintf(ret, SIZE_ARGUMENT_SIZE, "%s%s", text, bare ? "iB" : "");
}

void format_bytes(double bytes, char ret[static AMOUNT_TEXT_SIZE])
{
        static const struct scale scales[] = {
                {1024.0 * 1024 * 1024 * 1024, "TiB"},
                {1024.0 * 1024 * 1024,        "GiB"},
                {1024.0 * 1024,               "MiB"},
                {1024.0,                      "KiB"},
                {1,                           "B"  },
        };

        format_scaled(bytes, scales, ret);
}

void format_count(double count, char ret[static AMOUNT_TEXT_SIZE])
{
        static const struct scale scales[] = {
                {1e9, "G"},
                {1e6, "M"},
                {1e3, "k"},
                {1,   "" },
        };

        format_scaled(count, scales, ret);
}

void format_nanoseconds(double nanoseconds, char ret[static AMOUNT_TEXT_SIZE])
{
        static const struct scale scales[] = {
                {1e9, "s" },
                {1e6, "ms"},
                {1e3, "us"},
                {1,   "ns"},
        };

        if (nanoseconds < 0)
                snprintf(ret, AMOUNT_TEXT_SIZE, "-");
        else
                format_scaled(nanoseconds, scales, ret);
}
