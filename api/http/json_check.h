/* SPDX-License-Identifier: MIT */
/* Whether a text is JSON, to the letter of RFC 8259. The parser behind it (cJSON) is more lenient than
 * clients may rely on: it takes control characters, bytes that are not UTF-8, "01", and ends strings at
 * \u0000. */
#pragma once

#include <stddef.h>

enum {
        JSON_DEPTH_MAX = 64,
        JSON_NAMES_MAX = 256, /* in one object: to compare them with each other must stay cheap */
};

struct json_fault {
        const char *what;    /* "a comma or ']' was expected" */
        size_t line, column; /* from 1; the column counts bytes */
};

/* `text` has a NUL after its `size` bytes. 0; -EINVAL with *ret_fault. One value, white space around it,
 * nothing after it. */
int json_check(const char *text, size_t size, struct json_fault *ret_fault);
