/* SPDX-License-Identifier: MIT */
/* The numbers of a spec that a rule bounds one by one. Pure. */
#pragma once

#include "ublkd/policy/policy_verdict.h"

/* Check queues, queueDepth, maxIoSize, busyPollUs, limits and resources. */
void policy_ceilings_check(struct policy_verdict *verdict);
