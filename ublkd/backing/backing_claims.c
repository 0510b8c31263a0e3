/* SPDX-License-Identifier: MIT */
/* Where the bytes of a disk lie. */
#include "ublkd/backing/backing_claims.h"

#include <stdio.h>
#include <string.h>

static bool is_same(const struct backing_claim *one, const struct backing_claim *other)
{
        return strcmp(one->key, other->key) == 0 && one->start == other->start && one->end == other->end
               && one->writes == other->writes && one->mapped == other->mapped;
}

static bool holds(const struct backing_claims *claims, const struct backing_claim *claim)
{
        for (size_t i = 0; i < claims->count; i++)
                if (is_same(&claims->items[i], claim))
                        return true;
        return false;
}

/* It becomes a line of a file and a word of a message. */
static bool is_valid_key(const char *key)
{
        size_t length = key ? strlen(key) : 0;

        if (length == 0 || length > BACKING_KEY_MAX)
                return false;
        for (size_t i = 0; i < length; i++)
                if (key[i] <= ' ' || key[i] > '~')
                        return false;
        return true;
}

int backing_claims_add(struct backing_claims *claims, const struct backing_claim *claim)
{
        struct backing_claim *items, copy = *claim;

        if (!is_valid_key(claim->key))
                return -EINVAL;
        if (holds(claims, claim))
                return 0;
        if (claims->count == BACKING_CLAIMS_MAX)
                return -E2BIG;
        items = reallocarray(claims->items, claims->count + 1, sizeof(*items));
        if (!items)
                return -ENOMEM;
        claims->items = items;
        copy.key = strdup(claim->key);
        if (!copy.key)
                return -ENOMEM;
        items[claims->count++] = copy;
        return 0;
}

int backing_claims_append(struct backing_claims *claims, const struct backing_claims *from)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < from->count; i++)
                r = backing_claims_add(claims, &from->items[i]);
        return r;
}

bool backing_claims_equal(const struct backing_claims *one, const struct backing_claims *other)
{
        if (one->count != other->count)
                return false;
        for (size_t i = 0; i < one->count; i++)
                if (!is_same(&one->items[i], &other->items[i]))
                        return false;
        return true;
}

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

bool backing_claims_collide(const struct backing_claims *one, const struct backing_claims *other)
{
        for (size_t i = 0; i < one->count; i++)
                for (size_t k = 0; k < other->count; k++)
                        if (collide(&one->items[i], &other->items[k]))
                                return true;
        return false;
}

/* A file system without a block device has major number 0. */
bool backing_key_device(const char *key, unsigned *ret_major, unsigned *ret_minor)
{
        unsigned major, minor;
        int end = 0;

        if (sscanf(key, "disk:%u:%u", &major, &minor) != 2
                && (sscanf(key, "file:%u:%u:%n", &major, &minor, &end) != 2 || end == 0))
                return false;
        if (major == 0)
                return false;
        *ret_major = major;
        *ret_minor = minor;
        return true;
}

void backing_claims_resize(struct backing_claims *claims, uint64_t size)
{
        for (size_t i = 0; i < claims->count; i++) {
                struct backing_claim *claim = &claims->items[i];

                if (!claim->mapped && __builtin_add_overflow(claim->start, size, &claim->end))
                        claim->end = UINT64_MAX;
        }
}

void backing_claims_clear(struct backing_claims *claims)
{
        for (size_t i = 0; i < claims->count; i++)
                free(claims->items[i].key);
        free(claims->items);
        *claims = (struct backing_claims){};
}
