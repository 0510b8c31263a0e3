/* SPDX-License-Identifier: MIT */
/* The worker's side of the targets of this build: name → callbacks. */
#include "targets/worker/disk/registry.h"
#include "targets/fault/fault.h"
#include "targets/linear/linear.h"
#include "targets/loop/loop.h"
#include "targets/null/null.h"
#include "targets/stripe/stripe.h"

#include <string.h>

static const struct target *const targets[] = {
        &fault_target,
        &linear_target,
        &loop_target,
        &null_target,
        &stripe_target,
};

const struct target *target_find(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
                if (strcmp(targets[i]->desc->name, name) == 0)
                        return targets[i];
        return NULL;
}
