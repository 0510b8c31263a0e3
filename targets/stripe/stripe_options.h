/* SPDX-License-Identifier: MIT */
/* The options of the stripe target, as its generated table fills them. */
#pragma once

#include "targets/scrub/scrub_desc.h"
#include "ublkd/values/dispatch.h"

struct stripe_options {
        uint64_t chunk; /* bytes */
};

extern const struct option_table stripe_options_table;
extern const struct option_table stripe_scrub_arguments_table;
