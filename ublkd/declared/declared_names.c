/* SPDX-License-Identifier: MIT */
/* A queue of names. */
#include "ublkd/declared/declared_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void names_clear(struct names *names)
{
        for (size_t i = names->head; i < names->count; i++)
                free(names->items[i]);
        free(names->items);
        *names = (struct names){};
}

int names_add(struct names *names, const char *name)
{
        char **items = reallocarray(names->items, names->count + 1, sizeof(*items));

        if (!items)
                return -ENOMEM;
        names->items = items;
        items[names->count] = strdup(name);
        return items[names->count] ? (names->count++, 0) : -ENOMEM;
}

const char *names_head(const struct names *names)
{
        return names->head < names->count ? names->items[names->head] : NULL;
}

void names_drop(struct names *names)
{
        free(names->items[names->head++]);
        if (names->head == names->count)
                names_clear(names);
}
