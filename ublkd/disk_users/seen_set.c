/* SPDX-License-Identifier: MIT */
/* A set of pairs of numbers: a hash table with open addressing, half full at most. */
#include "ublkd/disk_users/seen_set.h"

#include <errno.h>
#include <stdlib.h>

enum { SIZE_FIRST = 64 };

/* Return the slot of `pair`, or the free slot where it belongs. */
static struct seen_pair *find(const struct seen_set *set, struct seen_pair pair)
{
        uint64_t hash = (pair.first ^ (pair.second << 32 | pair.second >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
        size_t at = (size_t)(hash >> 32);

        for (;; at++) {
                struct seen_pair *slot = &set->slots[at & (set->size - 1)];

                if ((slot->first == 0 && slot->second == 0)
                        || (slot->first == pair.first && slot->second == pair.second))
                        return slot;
        }
}

static int grow(struct seen_set *set)
{
        struct seen_set bigger = {.size = set->size ? 2 * set->size : SIZE_FIRST, .count = set->count};

        bigger.slots = calloc(bigger.size, sizeof(*bigger.slots));
        if (!bigger.slots)
                return -ENOMEM;
        for (size_t i = 0; i < set->size; i++)
                if (set->slots[i].first || set->slots[i].second)
                        *find(&bigger, set->slots[i]) = set->slots[i];
        free(set->slots);
        *set = bigger;
        return 0;
}

bool seen_set_has(const struct seen_set *set, struct seen_pair pair)
{
        const struct seen_pair *slot = set->size ? find(set, pair) : NULL;

        return slot && (slot->first || slot->second);
}

int seen_set_add(struct seen_set *set, struct seen_pair pair)
{
        struct seen_pair *slot;
        int r = 2 * (set->count + 1) > set->size ? grow(set) : 0;

        if (r < 0)
                return r;
        slot = find(set, pair);
        if (slot->first == 0 && slot->second == 0) {
                *slot = pair;
                set->count++;
        }
        return 0;
}

void seen_set_clear(struct seen_set *set)
{
        free(set->slots);
        *set = (struct seen_set){};
}
