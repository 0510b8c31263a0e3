/* SPDX-License-Identifier: MIT */
/* A set of pairs of numbers that grows as needed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seen_pair {
        uint64_t first, second; /* not both 0 */
};

/* Initialise with zeros; seen_set_clear() frees what it owns. */
struct seen_set {
        struct seen_pair *slots; /* `size` of them, a power of two; both 0: free */
        size_t size, count;
};

/* Return whether the set has the pair. */
bool seen_set_has(const struct seen_set *set, struct seen_pair pair);
/* Add a pair. Return 0 (also if the set has it) or -ENOMEM. */
int seen_set_add(struct seen_set *set, struct seen_pair pair);
/* Free what the set owns. It is empty, and can be filled again. */
void seen_set_clear(struct seen_set *set);
