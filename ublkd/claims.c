/* Whether two devices would write to one backing store. */
#include "ublkd/claims.h"

#include <string.h>

static bool overlap(const struct backing_claim *one, const struct backing_claim *other)
{
        if (one->start >= one->end || other->start >= other->end)
                return false; /* an empty range touches nothing */
        return one->start < other->end && other->start < one->end;
}

static bool collide(const struct backing_claim *one, const struct backing_claim *other)
{
        if ((!one->writes && !other->writes) || (one->mapped && other->mapped))
                return false;
        return strcmp(one->key, other->key) == 0 && overlap(one, other);
}

static bool lists_collide(const struct backing_claims *one, const struct backing_claims *other)
{
        for (size_t i = 0; i < one->count; i++)
                for (size_t k = 0; k < other->count; k++)
                        if (collide(&one->items[i], &other->items[k]))
                                return true;
        return false;
}

int claims_collide(
        const struct backing_claims *claims, const struct backing_claims *const *others, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (others[i] && lists_collide(claims, others[i]))
                        return (int)i;
        return -1;
}
