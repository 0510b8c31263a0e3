/* SPDX-License-Identifier: MIT */
/* {method, path} → handler. */
#pragma once

#include "api/http/request.h"

enum route_flag {
        ROUTE_CHANGES = 1 << 0,     /* only for those who may change things */
        ROUTE_BODY = 1 << 1,        /* takes JSON; the others take nothing */
        ROUTE_MERGE_PATCH = 1 << 2, /* that JSON is a merge patch */
        ROUTE_ANY_TIME = 1 << 3,    /* tells of no device: it need not wait for the first pass */
};

struct route {
        enum method method;
        const char *path;    /* "{name}" stands for one segment, "{rest}" at the end for all that remain */
        unsigned flags;      /* enum route_flag */
        unsigned parameters; /* enum query_parameter */
        const char *const *produces; /* media types of good answers, ends with NULL */
        void (*handle)(struct request *request);
};

enum { ALLOW_MAX = 64 };

/* A table of routes ends with a path that is NULL.
 *
 * Returns 0 and the route, and copies what {name} or {rest} stands for into `name`; -ENOENT: no such path;
 * -EPERM: the path knows other methods, listed in `allow` (OPTIONS is no route, so it always gets here). */
int route_find(const struct route *routes, const char *path, enum method method, const struct route **ret,
        char name[static PATH_NAME_MAX], char allow[static ALLOW_MAX]);

/* All methods that some path knows, as Allow lists them. */
void route_methods(char ret_allow[static ALLOW_MAX]);
