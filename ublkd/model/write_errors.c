/* SPDX-License-Identifier: MIT */
/* The token of the faults that lost acknowledged data: "flush-1-64aa5b2c81f3.cut-1-64aa5b2d9a10". */
#include "ublkd/model/write_errors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void add(char text[static WRITE_ERRORS_TOKEN_SIZE], const char *kind, uint32_t number, uint64_t at)
{
        size_t length = strlen(text);

        if (number > 0)
                snprintf(text + length, WRITE_ERRORS_TOKEN_SIZE - length, "%s%s-%" PRIu32 "-%" PRIx64,
                        length > 0 ? "." : "", kind, number, at);
}

void write_errors_token(const struct device_faults *faults, char ret[static WRITE_ERRORS_TOKEN_SIZE])
{
        ret[0] = '\0';
        add(ret, "flush", faults->flush, faults->flush_at);
        add(ret, "cut", faults->cut, faults->cut_at);
}
