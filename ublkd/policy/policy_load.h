/* SPDX-License-Identifier: MIT */
/* Read a policy from its directory. */
#pragma once

#include "ublkd/policy/policy.h"

/* Read all files of `directory`, in the order of their names; a directory that does not exist makes a policy without
 * rules. It reads files, which may block. Return 0 and the policy; -EINVAL: something is wrong with a file, so there is no
 * policy at all, and the problems (PolicyInvalid) say what; -ENOMEM. */
int policy_load(const char *directory, const struct policy_accounts *accounts, struct policy **ret,
        struct problem_list *problems);
