/* SPDX-License-Identifier: MIT */
/* Server-Sent Events (WHATWG HTML, "9.2 Server-sent events"), from pieces of any size. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct sse;

/* `each` gets the data of every event that has some; false ends it. */
struct sse *sse_new(bool (*each)(void *userdata, const char *data), void *userdata);
struct sse *sse_free(struct sse *sse);

/* Takes a piece of the stream. False: `each` has ended it, or there is no memory. */
bool sse_feed(struct sse *sse, const char *data, size_t size);
/* A new connection: what was begun is dropped, the id stays. */
void sse_restart(struct sse *sse);

/* The id of the last complete event, also of one without data; "": none yet. */
const char *sse_last_id(const struct sse *sse);
/* What the stream asks for, in milliseconds, or `fallback`. */
unsigned sse_retry_ms(const struct sse *sse, unsigned fallback);
