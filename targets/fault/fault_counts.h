/* SPDX-License-Identifier: MIT */
/* What the counts of a fault target are (target_live.counts of targets/target.h). */
#pragma once

#include "targets/fault/fault_rules.h"

struct fault_counts {
        uint64_t seed; /* that was given, or chosen; 0: no worker has served yet */
        uint64_t cuts; /* how many actions have chosen their power cut by `seed` */
        uint64_t unused[6];
        struct fault_tally tallies[FAULT_RULES_MAX];
};
_Static_assert(sizeof(struct fault_counts) <= TARGET_COUNTS_MAX * sizeof(uint64_t), "they have room");
