/* SPDX-License-Identifier: MIT */
/* The policy as the supervisor loads it: the policy or its faults, and the report of both. */
#pragma once

#include "ublkd/policy/policy.h"

/* The result of a load. Zero-initialise. */
struct tenant_policy {
        struct policy *policy;        /* owned; NULL: it has faults, or out of memory */
        struct problem_list problems; /* the faults */
        int error;                    /* 0 or -errno */
};

/* Load the policy of the directory, with the users and groups of this host. It reads files, which may block. */
void tenant_policy_load(const char *directory, struct tenant_policy *ret);
void tenant_policy_clear(struct tenant_policy *loaded);

/* Add a note to the policy (RuntimeDirectoryElsewhere), if it gives devices and the rule of udev does not read this runtime
 * directory. Only its text counts. On ENOMEM there is none. */
void tenant_policy_check_runtime(const struct tenant_policy *loaded, const char *runtime_dir);

/* Log what is wrong with the policy, and add it to the problems that the host shows (PolicyNotLoaded, PolicyNotReloaded,
 * PolicyInvalid, and the notes of the policy). has_older: one from before stays in force if this one has faults. */
void tenant_policy_report(const struct tenant_policy *loaded, bool has_older, struct problem_list *shown);
