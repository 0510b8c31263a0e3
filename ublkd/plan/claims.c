/* SPDX-License-Identifier: MIT */
/* Whether two devices would write to one backing store. */
#include "ublkd/plan/claims.h"

int claims_collide(
        const struct backing_claims *claims, const struct backing_claims *const *others, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (others[i] && backing_claims_collide(claims, others[i]))
                        return (int)i;
        return -1;
}
