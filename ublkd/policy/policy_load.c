/* SPDX-License-Identifier: MIT */
/* Read a policy from its directory. */
#include "ublkd/policy/policy_load.h"

#include "ublkd/policy/policy.h"
#include "ublkd/policy/policy_files.h"
#include "ublkd/policy/policy_parse.h"

int policy_load(const char *directory, const struct policy_accounts *accounts, struct policy **ret,
        struct problem_list *problems)
{
        _cleanup_policy_files_ struct policy_files files = {};
        _cleanup_policy_ struct policy *policy = NULL;
        int r = policy_files_read(directory, &files, problems);

        if (r >= 0)
                r = policy_new(directory, &policy);
        if (r >= 0)
                r = policy_parse(&files, accounts, policy, problems);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(policy);
        return 0;
}
