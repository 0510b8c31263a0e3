/* SPDX-License-Identifier: MIT */
/* The options of the null target, as the generated table fills them: there are none. */
#pragma once

#include "ublkd/values/dispatch.h"

struct null_options {
};

extern const struct option_table null_options_table;
