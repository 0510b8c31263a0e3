/* SPDX-License-Identifier: MIT */
/* PURE: whether the path of a device's spec may lead to another disk after the next boot. */
#pragma once

#include "ublkd/plan/plan.h"
#include "ublkd/proto/worker_msg.h"
#include "ublkd/store/device_store.h"

/* CONDITION_STABLE_PATH, as the worker with these parameters sees it (NULL: there is none that has reported them). 0,
 * with *ret untouched where it is not about the device, or -ENOMEM. */
int stable_path_condition(const struct device_record *record, const struct disk_params *params,
        enum plan_kernel kernel, struct device_condition *ret);
