/* Whether two devices would write to one backing store. */
#include "ublkd/claims.h"

#include <string.h>

static bool collide(const struct backing_claim *one, const struct backing_claim *other)
{
        if (!one->key || !other->key || strcmp(one->key, other->key) != 0)
                return false;
        if (!one->writes && !other->writes)
                return false;
        if (one->start >= one->end || other->start >= other->end)
                return false; /* an empty range touches nothing */
        return one->start < other->end && other->start < one->end;
}

int claims_collide(const struct backing_claim *claim, const struct backing_claim *const *others, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (others[i] && collide(claim, others[i]))
                        return (int)i;
        return -1;
}
