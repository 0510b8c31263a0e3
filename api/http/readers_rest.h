/* SPDX-License-Identifier: MIT */
/* The time that work for clients that may not change devices may take: after a piece of it, the next one waits for four times
 * as long (own_time.h). Short pieces add up, so they have a fifth of the time of the loop, or up to a half where most of
 * it are waits for a CPU. Private to api/. */
#pragma once

#include "api/http/own_time.h"

struct api;

/* Return the moment at which a piece of work begins. */
struct own_time readers_rest_begin(const struct api *api);

/* Count a piece of work that began then and ends now. */
void readers_rest_add(struct api *api, struct own_time began);

/* Return how long the next piece has to wait, in microseconds; 0: it may begin. */
uint64_t readers_rest_left(const struct api *api);
