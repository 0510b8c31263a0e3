/* SPDX-License-Identifier: MIT */
/* The targets of this build, as both programs know them. */
#include "targets/known/known_targets.h"
#include "targets/fault/fault_desc.h"
#include "targets/linear/linear_desc.h"
#include "targets/loop/loop_desc.h"
#include "targets/null/null_desc.h"
#include "targets/stripe/stripe_desc.h"

#include <string.h>

/* In alphabetical order. */
static const struct target_desc *const all[] = {
        &fault_desc,
        &linear_desc,
        &loop_desc,
        &null_desc,
        &stripe_desc,
};

const struct target_desc *known_target_find(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                if (strcmp(all[i]->name, name) == 0)
                        return all[i];
        return NULL;
}

const struct target_desc *const *known_targets_all(size_t *ret_count)
{
        *ret_count = ARRAY_SIZE(all);
        return all;
}
