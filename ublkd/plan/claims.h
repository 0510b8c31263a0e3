/* SPDX-License-Identifier: MIT */
/* PURE: whether two devices would write to one backing store and destroy each other's data. */
#pragma once

#include "ublkd/base/backing_claims.h"

/* The first of `others` (count entries; NULL entries are skipped) that `claims` collides with. Its index, or
 * -1: none. */
int claims_collide(
        const struct backing_claims *claims, const struct backing_claims *const *others, size_t count);
