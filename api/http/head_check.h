/* SPDX-License-Identifier: MIT */
/* Check that the head of a request can be read in one way only. Private to api/. */
#pragma once

#include "api/http/request.h"

enum { HEADERS_MAX = 64, HEAD_SIZE_MAX = 16 * 1024, TARGET_SIZE_MAX = 8 * 1024 };

/* Set request->last. Return true; or false with a reply that closes the connection, because the start of the next request is
 * unknown. */
bool head_check(struct request *request, const char *method, const char *version);
