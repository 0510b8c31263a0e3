/* SPDX-License-Identifier: MIT */
/* The worker's side of the targets of this build: name → callbacks. */
#pragma once

#include "targets/target.h"

/* Return the target with that name, or NULL. */
const struct target *target_find(const char *name);
