/* SPDX-License-Identifier: MIT */
/* From the options of a fault target to its rules. Pure; both programs do it. */
#pragma once

#include "targets/fault/fault_options.h"
#include "targets/fault/fault_rules.h"

/* Write the rules and the seed of the options, which are valid one by one. Return 0; also if problems were added (pointers begin
 * with "/target"), and then the rules have only what was good; -ENOMEM. */
int fault_parse(const struct fault_options *options, struct fault_rules *ret, struct problem_list *problems);
/* Return the name of an action, as the schema has it. */
const char *fault_action_to_string(enum fault_action action);
