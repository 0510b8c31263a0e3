/* SPDX-License-Identifier: MIT */
/* The time that work for clients that may not change devices may take. */
#include "api/http/readers_rest.h"

#include "api/http/server.h"

#include "ublkd/base/clock.h"

enum {
        SHORT_USEC = 1000, /* not worth a pause yet */
        REST_MAX_USEC = 10 * 1000 * 1000,
};

struct own_time readers_rest_begin(const struct api *api)
{
        return own_time_now(api->own_time);
}

void readers_rest_add(struct api *api, struct own_time began)
{
        struct own_time now = own_time_now(api->own_time);
        uint64_t from = api->readers_rest > now.wall ? api->readers_rest : now.wall;
        uint64_t until = from + own_time_pause(&began, &now), limit = now.wall + REST_MAX_USEC;

        api->readers_rest = until < limit ? until : limit;
}

uint64_t readers_rest_left(const struct api *api)
{
        uint64_t now = monotonic_now();

        return api->readers_rest > now + SHORT_USEC ? api->readers_rest - now : 0;
}
