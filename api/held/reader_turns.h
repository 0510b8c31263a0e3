/* SPDX-License-Identifier: MIT */
/* Work for clients that may not change devices: one piece in a turn of the loop, and only when nothing else is due.
 *
 * The HTTP library serves all connections that have something to read in one go. Without this, users that send many
 * requests would keep the loop from the deaths of workers, from the control plane and from root for as long as all of
 * these take together. So each such request is suspended when it is complete, and so is a stream of events that has
 * written what it had (watch.h). They run one by one: one of each account that has some, and of one account the oldest
 * first. After each they rest (readers_rest.h).
 *
 * An account that does not read its answers has no turn while they are too large together, so that they do not fill the
 * memory. If those of all are, the one whose answer was not read for longest loses its connections. */
#pragma once

#include "api/http/request.h"

/* Something that waits for a turn: a request, or a stream. */
struct reader_turn {
        struct request *request;
        /* Do a piece of work; called in its turn, when it does not wait any more. */
        void (*run)(struct reader_turn *turn);
        struct reader_turn *next,
                **link; /* in api->reader_turns, newest first; link is NULL when it does not wait */
};

/* Return whether the request can go on; for api->take_turn. False: it is suspended and goes on later, or is
 * abandoned (out of memory). */
bool reader_turn_take(struct request *request);

/* Wait for a turn, if `turn` does not yet. The caller owns it, and calls reader_turn_leave() before it frees it. Return 0, or
 * -errno. */
int reader_turn_wait(struct reader_turn *turn);
/* Wait no longer. May be called twice. */
void reader_turn_leave(struct reader_turn *turn);

/* Free what all share, so that the server can stop. */
void reader_turns_stop(struct api *api);
