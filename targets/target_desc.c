/* SPDX-License-Identifier: MIT */
/* The targets of this build. */
#include "targets/target_desc.h"

#include <string.h>

extern const struct target_desc fault_desc, linear_desc, loop_desc, null_desc, stripe_desc;

/* In alphabetical order. */
static const struct target_desc *const all[] = {
        &fault_desc,
        &linear_desc,
        &loop_desc,
        &null_desc,
        &stripe_desc,
};

const struct target_desc *target_desc_find(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                if (strcmp(all[i]->name, name) == 0)
                        return all[i];
        return NULL;
}

const struct target_desc *const *target_desc_all(size_t *ret_count)
{
        *ret_count = ARRAY_SIZE(all);
        return all;
}

int target_desc_verb(const struct target_desc *desc, const char *name)
{
        for (unsigned i = 0; i < desc->verb_count; i++)
                if (strcmp(desc->verbs[i].name, name) == 0)
                        return (int)i;
        return -1;
}
