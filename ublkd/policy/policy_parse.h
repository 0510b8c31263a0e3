/* SPDX-License-Identifier: MIT */
/* The texts of the files of a policy, into the policy. */
#pragma once

#include "ublkd/policy/policy.h"
#include "ublkd/policy/policy_files.h"

enum { POLICY_RULES_MAX = 1024 };

/* Parse the files into `policy`, which is empty, and look up the names of users and groups, which may block. Every fault is
 * a problem (PolicyInvalid) that names file, line and JSON pointer. Return 0; -EINVAL with problems: the policy is of no
 * use; -ENOMEM. */
int policy_parse(const struct policy_files *files, const struct policy_accounts *accounts,
        struct policy *policy, struct problem_list *problems);
