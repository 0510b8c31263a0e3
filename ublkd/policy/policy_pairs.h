/* SPDX-License-Identifier: MIT */
/* What the rules and pools of all files together must keep to. Pure. */
#pragma once

#include "ublkd/policy/policy.h"

/* Check names that are given twice, pools that do not exist, and prefixes of names that could belong to two tenants. Each
 * fault is a problem (PolicyInvalid), and sets *ret_faulty. Return 0 or -ENOMEM. */
int policy_pairs_check(const struct policy *policy, struct problem_list *problems, bool *ret_faulty);
