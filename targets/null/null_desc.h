/* SPDX-License-Identifier: MIT */
/* What both programs know of the null target. */
#pragma once

#include "targets/target_desc.h"

extern const struct target_desc null_desc;
