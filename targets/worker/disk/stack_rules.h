/* SPDX-License-Identifier: MIT */
/* What a target that stands on others can do, by what they can: one table, of the geometry. The other properties of a tree: what it
 * promises, needs and waits for (flags, needs, waits) is in targets/target_tree.c; its stores, their locks, identities and ends
 * in stack_stores.c; claims, sharing and the stable path are collected by stack.c. tests/target/stack_table_test.c holds all of
 * them against one set of rules. Pure. */
#pragma once

#include "targets/target.h"

/* Fill *ret, but for its size, claims, sharing and stable path, from the geometries of `count` children, at least one. */
void stack_rules_combine(
        const struct target_geometry *const children[], unsigned count, struct target_geometry *ret);

/* Set the callbacks of *ret for the operations that a tree of these targets has: those that each of them has, and flush if any of
 * them has it. */
void stack_rules_callbacks(const struct target *const targets[], unsigned count,
        int (*perform)(struct target_io *io), int (*flush)(struct target_io *io), struct target *ret);
