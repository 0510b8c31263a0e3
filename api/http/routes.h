/* SPDX-License-Identifier: MIT */
/* {method, path} → handler. */
#pragma once

#include "api/http/request.h"

enum route_flag {
        ROUTE_CHANGES = 1 << 0,     /* only for clients that may change devices */
        ROUTE_BODY = 1 << 1,        /* takes JSON; other routes take no body */
        ROUTE_MERGE_PATCH = 1 << 2, /* that JSON is a merge patch */
        ROUTE_ANY_TIME = 1 << 3,    /* shows no device: need not wait for the first pass */
        ROUTE_PUBLIC = 1 << 4,      /* also for clients that may not read */
        ROUTE_TENANTS = 1 << 5,     /* also for tenants, which see and change what is theirs */
};

struct route {
        enum method method;
        const char *
                path; /* "{name}" and, as the last one, "{item}" stand for one segment each, "{rest}" at the end for all
                             that remain */
        unsigned flags;              /* enum route_flag */
        unsigned parameters;         /* enum query_parameter */
        const char *const *produces; /* media types of good answers, with NULL at the end */
        void (*handle)(struct request *request);
};

enum { ALLOW_MAX = 64 };

/* Find the route of a path in a table that ends with a NULL path.
 *
 * Return 0 and the route, and copy what {name} or {rest} stands for into `name`, and what {item} stands for into `item`.
 * -ENOENT: unknown path;
 * -EPERM: the path has other methods, listed in `allow`. OPTIONS is not in the table, so it always returns
 * -EPERM. */
int route_find(const struct route *routes, const char *path, enum method method, const struct route **ret,
        char name[static PATH_NAME_MAX], char item[static PATH_NAME_MAX], char allow[static ALLOW_MAX]);

/* List all methods of the API, in the form of Allow. */
void route_methods(char ret_allow[static ALLOW_MAX]);
