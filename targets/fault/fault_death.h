/* SPDX-License-Identifier: MIT */
/* The death of the worker, as a rule of a fault target asks for it. */
#pragma once

#include "targets/fault/fault_rules.h"

/* End the process as if it was killed: nothing is finished. */
__attribute__((noreturn)) void fault_die(void);

/* Die at the moment of a rule of FAULT_DIE, while pass() performs the request. Suspends. Return what pass() returns: the request
 * has waited less often than the rule counts. */
int fault_die_at(struct target_io *io, const struct fault_rule *rule, int (*pass)(struct target_io *io));
