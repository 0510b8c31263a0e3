/* SPDX-License-Identifier: MIT */
/* The pools of this host. */
#include "ublkd/pools/pool_set.h"

#include <errno.h>
#include <string.h>

int pool_set_add(struct pool_set *set, const char *name, const char *directory)
{
        struct pool pool = {};
        struct pool *pools;

        if (pool_set_find(set, name))
                return -EEXIST;
        pools = reallocarray(set->pools, set->count + 1, sizeof(*pools));
        if (!pools)
                return -ENOMEM;
        set->pools = pools;
        pool.name = strdup(name);
        pool.directory = strdup(directory);
        if (!pool.name || !pool.directory) {
                free(pool.name);
                free(pool.directory);
                return -ENOMEM;
        }
        set->pools[set->count++] = pool;
        return 0;
}

const struct pool *pool_set_find(const struct pool_set *set, const char *name)
{
        for (size_t i = 0; set && i < set->count; i++)
                if (strcmp(set->pools[i].name, name) == 0)
                        return &set->pools[i];
        return NULL;
}

void pool_set_clear(struct pool_set *set)
{
        for (size_t i = 0; i < set->count; i++) {
                free(set->pools[i].name);
                free(set->pools[i].directory);
        }
        free(set->pools);
        *set = (struct pool_set){};
}
