/* SPDX-License-Identifier: MIT */
/* Whether two devices would write to one backing store.
 *
 * An interval tree: claims are sorted by kind, store and start, and each knows where the claims of its subtree
 * end at the latest. Claims that cannot collide with each other are of different kinds, and so are found, or
 * left out, as a whole. Where a subtree has claims of several stores its end says less, but such subtrees lie
 * on two ways down the tree only. */
#include "ublkd/plan/claims.h"

#include <string.h>

struct held_claim {
        const struct backing_claim *claim;
        struct held_claims *held;
        uint64_t latest_end; /* in its subtree */
        struct tree_node node;
};

struct held_claims {
        struct claim_index *index; /* NULL: in none */
        void *owner;
        size_t count;
        struct held_claim items[];
};

/* Of which other kinds a claim is to be kept apart. */
struct kind {
        bool writes, mapped;
};

static struct held_claim *claim_of(const struct tree_node *node)
{
        return TREE_OBJECT(node, struct held_claim, node);
}

/* ---- order ---- */

static int compare_numbers(uint64_t one, uint64_t other)
{
        return (one > other) - (one < other);
}

static int compare_bools(bool one, bool other)
{
        return one - other;
}

/* By kind and store. */
static int compare_place(const struct backing_claim *one, const struct backing_claim *other)
{
        int order = compare_bools(one->writes, other->writes);

        if (order == 0)
                order = compare_bools(one->mapped, other->mapped);
        return order != 0 ? order : strcmp(one->key, other->key);
}

/* Every claim in the tree is another object, and so has a place of its own. */
static int compare(const void *key, const struct tree_node *node)
{
        const struct held_claim *one = key, *other = claim_of(node);
        int order = compare_place(one->claim, other->claim);

        if (order == 0)
                order = compare_numbers(one->claim->start, other->claim->start);
        return order != 0 ? order : compare_numbers((uintptr_t)one, (uintptr_t)other);
}

static void update(struct tree_node *node)
{
        const struct held_claim *children[] = {claim_of(node->left), claim_of(node->right)};
        struct held_claim *claim = claim_of(node);

        claim->latest_end = claim->claim->end;
        for (size_t i = 0; i < ARRAY_SIZE(children); i++)
                if (children[i] && children[i]->latest_end > claim->latest_end)
                        claim->latest_end = children[i]->latest_end;
}

void claim_index_init(struct claim_index *index)
{
        index->claims = (struct tree){.compare = compare, .update = update};
}

/* ---- what is held ---- */

struct held_claims *held_claims_new(const struct backing_claims *claims, void *owner)
{
        struct held_claims *held = calloc(1, sizeof(*held) + claims->count * sizeof(held->items[0]));

        if (!held)
                return NULL;
        held->owner = owner;
        held->count = claims->count;
        for (size_t i = 0; i < claims->count; i++)
                held->items[i] = (struct held_claim){.claim = &claims->items[i], .held = held};
        return held;
}

void claim_index_add(struct claim_index *index, struct held_claims *held)
{
        held->index = index;
        for (size_t i = 0; i < held->count; i++)
                tree_insert(&index->claims, &held->items[i], &held->items[i].node);
}

struct held_claims *held_claims_free(struct held_claims *held)
{
        for (size_t i = 0; held && held->index && i < held->count; i++)
                (void)tree_remove(&held->index->claims, &held->items[i]);
        free(held);
        return NULL;
}

/* ---- collisions ---- */

struct search {
        const struct backing_claim *claim; /* with the kind of what is looked for */
        const void *self;
        size_t *looks;
};

/* The claim in the subtree that is of the kind and store, overlaps, and is another's. */
static struct held_claim *find_below(const struct search *search, const struct tree_node *node)
{
        struct held_claim *at = claim_of(node), *found;
        int order;

        if (!at)
                return NULL;
        (*search->looks)++;
        if (at->latest_end <= search->claim->start)
                return NULL;
        order = compare_place(search->claim, at->claim);
        found = order <= 0 ? find_below(search, node->left) : NULL;
        if (found)
                return found;
        if (order == 0 && at->claim->start >= search->claim->end)
                return NULL; /* and so do all that come after it */
        if (order == 0 && at->claim->start < at->claim->end && at->claim->end > search->claim->start
                && at->held->owner != search->self)
                return at;
        return order >= 0 ? find_below(search, node->right) : NULL;
}

static struct held_claim *find_collision(
        const struct claim_index *index, const struct backing_claim *claim, const void *self, size_t *looks)
{
        static const struct kind kinds[] = {
                {false, false},
                {false, true },
                {true,  false},
                {true,  true }
        };
        struct held_claim *found = NULL;

        if (claim->start >= claim->end)
                return NULL; /* an empty range touches nothing */
        for (size_t i = 0; !found && i < ARRAY_SIZE(kinds); i++) {
                struct backing_claim wanted = *claim;

                if ((!claim->writes && !kinds[i].writes) || (claim->mapped && kinds[i].mapped))
                        continue;
                wanted.writes = kinds[i].writes;
                wanted.mapped = kinds[i].mapped;
                found = find_below(&(const struct search){&wanted, self, looks}, index->claims.root);
        }
        return found;
}

void *claim_index_collide(const struct claim_index *index, const struct backing_claims *claims,
        const void *self, size_t *ret_looks)
{
        const struct held_claim *found = NULL;

        *ret_looks = 0;
        for (size_t i = 0; !found && i < claims->count; i++)
                found = find_collision(index, &claims->items[i], self, ret_looks);
        return found ? found->held->owner : NULL;
}
