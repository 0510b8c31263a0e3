/* SPDX-License-Identifier: MIT */
/* Requests of clients that may not change devices: one in a turn of the loop, and only when nothing else is due.
 *
 * The HTTP library serves all connections that have something to read in one go. Without this, users that send many
 * requests would keep the loop from the deaths of workers, from the control plane and from root for as long as all of
 * these take together. So each such request is suspended when it is complete, and they run one by one, the oldest
 * first. After one that took long, the next one waits for four times as long (own_time.h): they have a fifth of the time of
 * the loop, or up to a half where most of it are waits for a CPU.
 *
 * A user that does not read its answers has no turn while they are too large together, so that they do not fill the
 * memory. If those of all users are, the user with the one that was not read for longest loses its connections. */
#pragma once

#include "api/http/request.h"

/* Return whether the request can go on; for api->take_turn. False: it is suspended and goes on later, or is
 * abandoned (out of memory). */
bool reader_turn_take(struct request *request);

/* Free what all share, so that the server can stop. */
void reader_turns_stop(struct api *api);

/* Return how many requests wait for their turn. */
size_t reader_turn_count(const struct api *api);
