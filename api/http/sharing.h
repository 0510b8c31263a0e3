/* SPDX-License-Identifier: MIT */
/* Answers that clients that may not change devices share: whatever takes long is computed for all of them once in a
 * second for each route and query, and kept in memory once. A client that may change devices, a tenant among them, gets an
 * answer of its own, so that it sees its own changes, and no tenant gets the answer of another one. Private to api/. */
#pragma once

#include <stdbool.h>

struct api;
struct request;

/* Reply with what another client was given for the same route and query within the last second. Return false if there is none,
 * or the client must get its own. */
bool sharing_reply(struct request *request);

/* Share the reply of the request, if it is good and the client may not change devices. On ENOMEM it is not shared. */
void sharing_keep(struct request *request);

/* Drop all, so that the server can stop. */
void sharing_stop(struct api *api);
