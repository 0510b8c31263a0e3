/* SPDX-License-Identifier: MIT */
/* PURE: reports whether the limits of a worker's control group are in force. */
#pragma once

#include "ublkd/cgroups/worker_groups.h"
#include "ublkd/model/device_condition.h"

/* Return REASON_RESOURCES_IN_FORCE or REASON_RESOURCES_NOT_IN_FORCE. result: for limits of which any is set. */
enum condition_reason resources_reason(const struct group_result *result);
/* Write CONDITION_RESOURCES, or leave *ret untouched without a limit. wanted: by the spec. result: of the worker that
 * serves; NULL: not known yet. Return 0 or -ENOMEM. */
int resources_condition(
        const struct group_limits *wanted, const struct group_result *result, struct device_condition *ret);
