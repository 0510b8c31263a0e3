/* SPDX-License-Identifier: MIT */
/* Send requests that change one device and, as the options say, wait until it is ready. */
#pragma once

#include "ublkctl/verbs/await.h"

/* Print "?wait=ready&timeout=…" into `ret`, with "?"; "" if `wait` is false. Cut a longer time to the
 * daemon's limit. */
enum { WAIT_QUERY_SIZE = 64 };
void wait_query(const struct context *context, bool wait, const char *what, char ret[static WAIT_QUERY_SIZE]);
