/* SPDX-License-Identifier: MIT */
/* The pools of this host: directories in which ublkd makes the images of loop disks. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stddef.h>

struct pool {
        char *name;      /* as in target.pool */
        char *directory; /* absolute */
};

/* Owns its pools. Zero-initialise. */
struct pool_set {
        struct pool *pools;
        size_t count;
};

/* Add a pool. Return 0; -EEXIST: there is one of this name; or -ENOMEM. On failure the set is unchanged. */
int pool_set_add(struct pool_set *set, const char *name, const char *directory);
/* Return the pool called `name`, or NULL. set: NULL is a set without pools. */
const struct pool *pool_set_find(const struct pool_set *set, const char *name);
/* Free the pools and empty the set. */
void pool_set_clear(struct pool_set *set);
#define _cleanup_pool_set_ _cleanup_(pool_set_clear)
