/* SPDX-License-Identifier: MIT */
/* What both programs know of the linear target. */
#pragma once

#include "targets/target_desc.h"

extern const struct target_desc linear_desc;
