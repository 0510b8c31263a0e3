/* SPDX-License-Identifier: MIT */
/* Check that a text is JSON, to the letter of RFC 8259. The parser (cJSON) is more lenient than clients may
 * rely on: it accepts control characters, bytes that are not UTF-8, and "01", and it ends strings at
 * \u0000. */
#pragma once

#include <stddef.h>

enum {
        JSON_DEPTH_MAX = 64,
        JSON_NAMES_MAX = 256, /* in one object: comparing them with each other must stay cheap */
};

struct json_fault {
        const char *what;    /* "expected a comma or ']'" */
        size_t line, column; /* from 1; the column counts bytes */
};

/* Check `text`, which has a NUL after its `size` bytes: one value, with white space around it. Return 0;
 * -EINVAL with *ret_fault. */
int json_check(const char *text, size_t size, struct json_fault *ret_fault);
