/* SPDX-License-Identifier: MIT */
/* The numbers of a spec that a rule bounds one by one. Pure. */
#pragma once

#include "ublkd/policy/policy_verdict.h"

/* Return the least resources.memoryMax, in bytes, that any spec may have by a rule without `waiting`. */
uint64_t policy_ceilings_least_memory(void);
/* Check queues, queueDepth, maxIoSize, busyPollUs, limits and resources. */
void policy_ceilings_check(struct policy_verdict *verdict);
