/* SPDX-License-Identifier: MIT */
/* Who a rule is for: from names and numbers to numbers. */
#pragma once

#include "ublkd/policy/policy.h"
#include "ublkd/policy/policy_fault.h"

/* Set `uids`, `gids` and `is_for_one` of the rule by its options. A name that does not exist is one of the notes
 * (PolicyNameUnknown), and no fault: the rule matches no client by it. Reads files, which may block. Return 0, also
 * with faults; or -ENOMEM. */
int policy_who_parse(struct policy_rule *rule, const struct policy_accounts *accounts, const char *pointer,
        struct policy_faults *faults, struct problem_list *notes);
