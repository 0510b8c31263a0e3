/* SPDX-License-Identifier: MIT */
/* What a target that stands on others can do, by what they can: one table. What a whole tree promises (its flags) is in
 * targets/target_tree.h. Pure. */
#pragma once

#include "targets/target.h"

/* Fill *ret, but for its size, claims, sharing and stable path, from the geometries of `count` children, at least one. */
void stack_rules_combine(
        const struct target_geometry *const children[], unsigned count, struct target_geometry *ret);

/* Set the callbacks of *ret for the operations that a tree of these targets has: those that each of them has, and flush if any of
 * them has it. */
void stack_rules_callbacks(const struct target *const targets[], unsigned count,
        int (*perform)(struct target_io *io), int (*flush)(struct target_io *io), struct target *ret);
