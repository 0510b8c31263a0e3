/* SPDX-License-Identifier: MIT */
/* The targets of this build, as both programs know them. */
#pragma once

#include "targets/target_desc.h"

/* Return the descriptor with that name, or NULL. */
const struct target_desc *known_target_find(const char *name);

/* Return all targets of this build, `*ret_count` of them, in alphabetical order. */
const struct target_desc *const *known_targets_all(size_t *ret_count);
