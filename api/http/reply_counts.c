/* SPDX-License-Identifier: MIT */
/* Count replies: one row for each route, and one for requests that match no route. */
#include "api/http/reply_counts.h"

#include "api/http/routes.h"
#include "api/http/server.h"

static size_t count_routes(const struct route *routes)
{
        size_t count = 0;

        while (routes[count].path)
                count++;
        return count;
}

static uint64_t *row_of(const struct api *api, const struct route *route)
{
        return api->replies[route ? (size_t)(route - api->routes) : count_routes(api->routes)];
}

int reply_counts_new(struct api *api)
{
        api->replies = calloc(count_routes(api->routes) + 1, sizeof(*api->replies));
        return api->replies ? 0 : -ENOMEM;
}

void reply_count(struct api *api, const struct route *route, unsigned status)
{
        unsigned first = status / 100 - 1;

        if (first < STATUS_CLASSES)
                row_of(api, route)[first]++;
}

const uint64_t *reply_counts_of(const struct api *api, const struct route *route)
{
        return row_of(api, route);
}
