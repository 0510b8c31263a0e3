/* SPDX-License-Identifier: MIT */
/* Amounts with a unit, as users write them. */
#include "ublkd/values/quantity.h"
#include "ublkd/base/cleanup.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct unit {
        const char *name;
        uint64_t factor;
};

static const struct unit byte_units[] = {
        {.name = "",    .factor = 1                },
        {.name = "KiB", .factor = UINT64_C(1) << 10},
        {.name = "MiB", .factor = UINT64_C(1) << 20},
        {.name = "GiB", .factor = UINT64_C(1) << 30},
        {.name = "TiB", .factor = UINT64_C(1) << 40},
        /* as truncate(1) and losetup(8) take them */
        {.name = "K",   .factor = UINT64_C(1) << 10},
        {.name = "M",   .factor = UINT64_C(1) << 20},
        {.name = "G",   .factor = UINT64_C(1) << 30},
        {.name = "T",   .factor = UINT64_C(1) << 40},
};

static const struct unit duration_units[] = {
        {.name = "us",  .factor = 1                           },
        {.name = "ms",  .factor = 1000                        },
        {.name = "s",   .factor = 1000 * 1000                 },
        {.name = "m",   .factor = UINT64_C(60) * 1000 * 1000  },
        {.name = "min", .factor = UINT64_C(60) * 1000 * 1000  },
        {.name = "h",   .factor = UINT64_C(3600) * 1000 * 1000},
};

/* A whole number without leading zeroes, then the name of a unit. */
static int parse_quantity(const char *text, const struct unit *units, size_t count, uint64_t *ret)
{
        const struct unit *unit = NULL;
        const char *digits = text;
        uint64_t number = 0;
        bool overflow = false;

        for (; isdigit((unsigned char)*text); text++)
                overflow = overflow || __builtin_mul_overflow(number, 10u, &number)
                           || __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number);
        if (text == digits || (*digits == '0' && text > digits + 1))
                return -EINVAL;
        for (size_t i = 0; i < count && !unit; i++)
                if (strcmp(units[i].name, text) == 0)
                        unit = &units[i];
        if (!unit)
                return -EINVAL;
        if (overflow || __builtin_mul_overflow(number, unit->factor, &number) || number > INT64_MAX)
                return -ERANGE;
        *ret = number;
        return 0;
}

bool is_number(const char *text)
{
        return *text && strspn(text, "0123456789") == strlen(text);
}

int parse_bytes(const char *text, uint64_t *ret)
{
        return parse_quantity(text, byte_units, ARRAY_SIZE(byte_units), ret);
}

int parse_duration(const char *text, uint64_t *ret_usec)
{
        /* The one amount that needs no unit. */
        if (strcmp(text, "0") == 0) {
                *ret_usec = 0;
                return 0;
        }
        return parse_quantity(text, duration_units, ARRAY_SIZE(duration_units), ret_usec);
}

void format_size(uint64_t bytes, char ret[static SIZE_TEXT_MAX])
{
        const struct unit *largest = NULL;

        for (size_t i = 0; bytes > 0 && i < ARRAY_SIZE(byte_units); i++)
                if (byte_units[i].factor > 1 && bytes % byte_units[i].factor == 0
                        && (!largest || byte_units[i].factor > largest->factor))
                        largest = &byte_units[i];
        if (largest)
                snprintf(ret, SIZE_TEXT_MAX, "%" PRIu64 "%s", bytes / largest->factor, largest->name);
        else
                snprintf(ret, SIZE_TEXT_MAX, "%" PRIu64 " bytes", bytes);
}

void format_duration(uint64_t usec, char ret[static DURATION_SIZE])
{
        size_t i = ARRAY_SIZE(duration_units) - 1;

        while (i > 0 && (usec < duration_units[i].factor || usec % duration_units[i].factor != 0))
                i--;
        snprintf(
                ret, DURATION_SIZE, "%" PRIu64 "%s", usec / duration_units[i].factor, duration_units[i].name);
}
