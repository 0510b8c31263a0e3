/* SPDX-License-Identifier: MIT */
/* The Accept header. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether `type` ("application/json") is what the first `size` bytes of `text` say, without parameters. */
bool media_type_is(const char *text, size_t size, const char *type);

/* What a client takes of one type, from all of its Accept lines. Begins as {}. */
struct accept {
        bool given; /* there was a line that is not empty */
        unsigned fit, quality;
};

/* Adds one line. Who takes JSON takes what is JSON underneath. */
void accept_read(struct accept *accept, const char *line, const char *type);

/* How much the client likes the type: 0 (not acceptable) to 1000. */
unsigned accept_quality(const struct accept *accept);
