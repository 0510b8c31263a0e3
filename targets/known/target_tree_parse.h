/* SPDX-License-Identifier: MIT */
/* The tree of targets of a spec, from its JSON. Pure. */
#pragma once

#include "targets/target_tree.h"

/* Parse the object of a spec's "target". Report all faults, each with its pointer below "/target". Return 0, also if
 * problems were added: then the tree has only what was good; -ENOMEM. */
int target_tree_parse(const cJSON *object, struct target_tree **ret, struct problem_list *problems);
