/* SPDX-License-Identifier: MIT */
/* PURE: reports a disk none of whose requests ends. */
#pragma once

#include "ublkd/model/device_condition.h"
#include "ublkd/plan/progress.h"

/* Return the reason that `progress` is shown with; REASON_NONE: requests end, or ublkd is not sure. */
enum condition_reason progress_reason(enum progress progress);
/* Write CONDITION_PROGRESS, or leave *ret untouched if requests end. since: CLOCK_REALTIME microseconds of the last
 * end. Return 0 or -ENOMEM. */
int progress_condition(enum progress progress, uint64_t since, struct device_condition *ret);
