/* SPDX-License-Identifier: MIT */
/* Parse Server-Sent Events (WHATWG HTML, "9.2 Server-sent events") from pieces of any size. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct sse;

/* Create a parser that calls `each` with the data of every event that has some, valid during the call; false
 * ends it. NULL on ENOMEM. sse_free() takes NULL and returns NULL. */
struct sse *sse_new(bool (*each)(void *userdata, const char *data), void *userdata);
struct sse *sse_free(struct sse *sse);

/* Parse a piece of the stream. False: `each` has ended it, or ENOMEM. */
bool sse_feed(struct sse *sse, const char *data, size_t size);
/* Prepare for a new connection: drop an incomplete event, keep the id. */
void sse_restart(struct sse *sse);

/* Return the id of the last complete event, also of an event without data; "": none yet. */
const char *sse_last_id(const struct sse *sse);
/* Return the reconnection time that the stream asks for, in milliseconds, or `fallback`. */
unsigned sse_retry_ms(const struct sse *sse, unsigned fallback);
