/* SPDX-License-Identifier: MIT */
/* The fault target: another target, with the faults that rules ask for. For tests. */
#pragma once

#include "targets/target.h"

extern const struct target fault_target;

enum { FAULT_EXIT_STATUS = 86 }; /* of a worker that a rule has killed */
