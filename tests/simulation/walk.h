/* SPDX-License-Identifier: MIT */
/* What must hold for the answer to every combination of facts. */
#pragma once

#include "ublkd/plan/plan.h"

typedef enum plan_action (*plan_function)(const struct plan_facts *facts);

/* Asks `decide` about every combination. NULL, or what rule is broken first; the facts are in *ret_facts. */
const char *walk_all_facts(plan_function decide, struct plan_facts *ret_facts);
