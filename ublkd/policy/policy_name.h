/* SPDX-License-Identifier: MIT */
/* Whose names a policy makes of those that begin with a prefix. Pure.
 *
 * A tenant learns that a name with its prefix is taken, in whatever device. So the administrators create no device with such a name. */
#pragma once

#include "ublkd/policy/policy.h"

/* Return the first rule by which a user may have a device with this name, or NULL: no tenant can ask for it. A rule for groups,
 * units or control groups may name any user, but those whom an earlier rule names by their uids. A rule without devices gives no
 * names. policy NULL: it has no rules. */
const struct policy_rule *policy_name_rule(const struct policy *policy, const char *name);
