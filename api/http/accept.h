/* SPDX-License-Identifier: MIT */
/* Parse the Accept header. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Return whether the first `size` bytes of `text` name `type` ("application/json"); parameters do not
 * count. */
bool media_type_is(const char *text, size_t size, const char *type);

/* How a client accepts one type, from all its Accept lines. Start with {}. */
struct accept {
        bool given; /* one line was not empty */
        unsigned fit, quality;
};

/* Add one line of the header. A client that accepts JSON accepts every type that is JSON underneath. */
void accept_read(struct accept *accept, const char *line, const char *type);

/* Return the client's preference for the type: 0 (not acceptable) to 1000. */
unsigned accept_quality(const struct accept *accept);
