/* SPDX-License-Identifier: MIT */
/* What a target must have for what its description promises: a callback that is missing would be called all the same. Pure. */
#pragma once

#include "targets/target.h"

/* Return what the target lacks, as a sentence for its author; NULL: nothing. */
const char *target_check(const struct target *target);
