/* SPDX-License-Identifier: MIT */
/* What is wrong with the file of a policy: problems that name the file, the line and the JSON pointer. */
#pragma once

#include "ublkd/base/problem.h"
#include "ublkd/policy/policy_files.h"
#include "ublkd/values/json_check.h"

#include <stdbool.h>

struct policy_faults {
        struct problem_list *problems;
        const struct policy_file *file; /* the one that is parsed */
        bool faulty;
};

/* Add a fault. pointer: of the object; name: of a member of it, or members with a slash, or NULL; index: in the list that
 * the member is, or -1. Return 0 or -ENOMEM. */
int policy_fault_add(struct policy_faults *faults, const char *pointer, const char *name, int index,
        const char *format, ...) _printf_(5, 6);
/* Add to `notes` a line as that of a fault, of what is none: the file counts. Return 0 or -ENOMEM. */
int policy_fault_note(const struct policy_faults *faults, struct problem_list *notes, const char *reason,
        const char *pointer, const char *name, const char *format, ...) _printf_(6, 7);
/* Add the fault of a text that is not JSON. Return 0 or -ENOMEM. */
int policy_fault_add_json(struct policy_faults *faults, const struct json_fault *fault);
/* Print where the value of the pointer is, "FILE:LINE", which the caller frees. Return 0 or -ENOMEM. */
int policy_fault_place(const struct policy_faults *faults, const char *pointer, char **ret);
