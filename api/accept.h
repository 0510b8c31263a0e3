/* The Accept header. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether `type` ("application/json") is what the first `size` bytes of `text` say, without parameters. */
bool media_type_is(const char *text, size_t size, const char *type);

/* Whether an Accept header (NULL or "": anything) has room for `type`. Who takes JSON takes what is JSON
 * underneath. Weights do not matter, unless they are zero. */
bool accept_allows(const char *accept, const char *type);
