/* SPDX-License-Identifier: MIT */
/* PURE: whether two devices would write to one backing store and destroy each other's data.
 *
 * The claims of all disks, indexed by store and place. A search looks at O(log n) claims, and at those of its
 * own disk in the same place; claims that may share a place with it (readers beside a reader, volumes of one
 * mapper) are not looked at, however many there are. */
#pragma once

#include "ublkd/backing/backing_claims.h"
#include "ublkd/base/tree.h"

/* Zero-initialise and claim_index_init(). Owns nothing. */
struct claim_index {
        struct tree claims;
};

/* What one disk claims, in an index or about to be. */
struct held_claims;

/* Begin with no claims. */
void claim_index_init(struct claim_index *index);

/* Prepare `claims`, which are `owner`'s, for an index; the items of `claims` must outlive the result. Owned by
 * the caller. NULL on ENOMEM. */
struct held_claims *held_claims_new(const struct backing_claims *claims, void *owner);
/* Take them out of their index, if they are in one, and free them. NULL is fine; return NULL. */
struct held_claims *held_claims_free(struct held_claims *held);
DEFINE_CLEANUP(struct held_claims, held_claims_free);
/* Put them into the index. They are in none. */
void claim_index_add(struct claim_index *index, struct held_claims *held);

/* Return the owner of claims in the index that collide with `claims` (see backing_claims_collide()), other than
 * `self`; NULL: there is none. `*ret_looks` is at how many claims it looked, for tests. */
void *claim_index_collide(const struct claim_index *index, const struct backing_claims *claims,
        const void *self, size_t *ret_looks);
