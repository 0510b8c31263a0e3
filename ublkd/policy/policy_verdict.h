/* SPDX-License-Identifier: MIT */
/* What a rule has against a spec, as it is found. */
#pragma once

#include "ublkd/policy/policy.h"

struct policy_verdict {
        const struct policy_rule *rule;
        const struct policy_client *client;
        const struct device_spec *spec;
        struct problem_list *problems;
        int error; /* 0; -EPERM: there are problems; -ENOMEM */
};

/* Add a problem with the field at `pointer`: "The rule NAME ..." and the rest of the sentence; of policy_require(), only
 * what to do. */
void policy_forbid(struct policy_verdict *verdict, const char *pointer, const char *format, ...)
        _printf_(3, 4);
void policy_exceed(struct policy_verdict *verdict, const char *pointer, const char *format, ...)
        _printf_(3, 4);
void policy_require(struct policy_verdict *verdict, const char *pointer, const char *format, ...)
        _printf_(3, 4);
