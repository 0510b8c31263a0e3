/* SPDX-License-Identifier: MIT */
/* Whether the head of a request says one thing only. Private to api/. */
#pragma once

#include "api/http/request.h"

enum { HEADERS_MAX = 64, HEAD_SIZE_MAX = 16 * 1024, TARGET_SIZE_MAX = 8 * 1024 };

/* True; or false, and there is a reply after which the connection is closed, for who knows where the next
 * request would begin. */
bool head_check(struct request *request, const char *method, const char *version);
