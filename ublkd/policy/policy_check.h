/* SPDX-License-Identifier: MIT */
/* Whether a rule allows a device. A decision by numbers that the caller has: no I/O. */
#pragma once

#include "ublkd/policy/policy.h"

/* What the client has already: all its devices but the one that is created or changed. */
struct policy_usage {
        uint64_t devices;
        uint64_t bytes; /* of all of them, with what their targets keep */
};

/* Check that `rule`, which matches the client, allows it a device with this spec. Every fault is a problem with the JSON
 * pointer of its field and a sentence that names the rule: PolicyForbids (the client may not have this value),
 * PolicyExceeded (a number is above a limit), PolicyRequires (a field is missing). Return 0: it is allowed; -EPERM with
 * problems; -ENOMEM. */
int policy_check(const struct policy_rule *rule, const struct policy_client *client,
        const struct device_spec *spec, const struct policy_usage *usage, struct problem_list *problems);
/* Return whether the rule lets its users have file systems made, mounted and delivered: 0; -EPERM with one problem (PolicyForbids); or
 * -ENOMEM. */
int policy_check_mount(const struct policy_rule *rule, struct problem_list *problems);
