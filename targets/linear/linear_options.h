/* SPDX-License-Identifier: MIT */
/* The options of the linear target, as its generated table fills them. */
#pragma once

#include "targets/scrub/scrub_desc.h"
#include "ublkd/values/dispatch.h"

struct linear_options {
        uint64_t offset; /* bytes, where in the child the disk begins */
        uint64_t length; /* bytes; 0: up to the end of the child */
};

extern const struct option_table linear_options_table;
extern const struct option_table linear_scrub_arguments_table;
