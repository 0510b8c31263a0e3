/* SPDX-License-Identifier: MIT */
/* Suspend a request until it is known which path of the host a path of the client's container is. Then its handler runs again
 * from its beginning. */
#pragma once

#include "api/http/request.h"

/* Return the path on the host of `path`, which is the same text each time; the request owns it. writes: the file is to be
 * written to. pointer: of the path in
 * the spec. NULL: the handler returns without a reply, because it will run again, or there is a reply: there is no such
 * path. */
const char *path_check(struct request *request, const char *path, const char *pointer, bool writes);
