/* SPDX-License-Identifier: MIT */
/* Requests that change one device and, as the options say, wait until it is ready. */
#pragma once

#include "ublkctl/verbs/await.h"

/* Makes "?wait=ready&timeout=…" (with "?", or nothing when `wait` is false) into `ret`. Longer times than the
 * daemon's limit are cut to it. */
enum { WAIT_QUERY_SIZE = 64 };
void wait_query(const struct context *context, bool wait, const char *what, char ret[static WAIT_QUERY_SIZE]);
