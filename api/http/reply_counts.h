/* SPDX-License-Identifier: MIT */
/* Count replies by route and class of status. Private to api/. */
#pragma once

#include <stdint.h>

struct api;
struct route;

enum { STATUS_CLASSES = 5 }; /* 1xx to 5xx */

/* Allocate api->replies for the routes of api->routes. Return 0 or -ENOMEM. */
int reply_counts_new(struct api *api);

/* Count a reply of `route`; NULL: of a request that matches no route. */
void reply_count(struct api *api, const struct route *route, unsigned status);

/* Return the STATUS_CLASSES counts of `route`; NULL: of requests that match no route. The api owns them. */
const uint64_t *reply_counts_of(const struct api *api, const struct route *route);
